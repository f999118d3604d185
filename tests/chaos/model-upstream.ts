import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { z } from 'zod';

/** One request, to count its repeats. */
interface Asked {
  /** The messages without the system's: equal for repeats of a call and for no other. */
  call: string;
  /** Whether its client left before the answer was complete. */
  left: boolean;
}

export interface ModelUpstream {
  baseUrl: string;
  /** The answer of the agent to a message. */
  answerTo(text: string): string;
  /** Requests so far. */
  readonly asked: number;
  /** Requests that are being answered. */
  readonly inFlight: number;
  /** Different prompts with a message of this text; repeats of a call count once. */
  promptsWith(text: string): number;
  /** The call of each request after the first `since`: equal for repeats of a call and for no other. */
  callsSince(since: number): string[];
  /** Among these: the most requests of one call, and the number of repeats. */
  repeats(since: number): { most: number; extra: number };
  close(): Promise<void>;
}

/** Bound of the requests that are recorded; a pass makes far fewer. */
const MAX_RETAINED = 200_000;
const WORD_MS = 15;
/** Per word of the answer to a message that ends in `slowly`. */
const SLOW_WORD_MS = 120;

const message = z.looseObject({ role: z.string(), content: z.string().nullish() });
const request = z.looseObject({
  messages: z.array(message),
  response_format: z.unknown().optional(),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).default([]),
});
type Request = z.infer<typeof request>;
type Delta = Record<string, unknown>;

/** Of a call that judges the one routine of a webhook that has conditions. */
const VERDICT = '{"routine_1":true}';

/**
 * The agent's model: an HTTP server with OpenAI's POST /chat/completions. It repeats a customer's message, and every condition of a routine holds. A run calls both of its tools, and
 * its output is their results.
 *
 * @param untilAnswered what a request waits for before it is answered
 */
export async function openModelUpstream(untilAnswered: () => Promise<void> = async () => {}): Promise<ModelUpstream> {
  const asked: Asked[] = [];
  let inFlight = 0;
  const serve = async (incoming: IncomingMessage, response: ServerResponse) => {
    const body = request.parse(JSON.parse(await readBody(incoming)));
    if (asked.length >= MAX_RETAINED) throw new Error('too many requests came');
    const one = { call: JSON.stringify(body.messages.filter(({ role }) => role !== 'system')), left: false };
    asked.push(one);
    inFlight += 1;
    response.on('close', () => {
      inFlight -= 1;
      one.left = !response.writableFinished;
    });
    await untilAnswered();
    await answer(body, response);
  };
  const server = createServer((incoming, response) => {
    // A request of another shape fails the call that it belongs to.
    serve(incoming, response).catch(() => response.socket?.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = z.object({ port: z.number() }).parse(server.address());
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    answerTo: (text) => `You said: ${text}`,
    get asked() {
      return asked.length;
    },
    get inFlight() {
      return inFlight;
    },
    promptsWith: (text) => new Set(asked.flatMap(({ call }) => (call.includes(JSON.stringify(text)) ? [call] : []))).size,
    callsSince: (since) => asked.slice(since).map(({ call }) => call),
    repeats: (since) => {
      const times = new Map<string, number>();
      for (const { call } of asked.slice(since)) times.set(call, (times.get(call) ?? 0) + 1);
      const counts = [...times.values()];
      return { most: Math.max(0, ...counts), extra: counts.reduce((sum, count) => sum + count - 1, 0) };
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(body: Request, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders();
  const send = (delta: Delta, finish: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    response.write(`data: ${JSON.stringify({ id: 'chatcmpl-chaos', object: 'chat.completion.chunk', created: 1, model: 'chaos', choices })}\n\n`);
  };
  const isRun = body.tools.some(({ function: { name } }) => name === 'emit_output');
  if (isRun) {
    await after(WORD_MS);
    send({ role: 'assistant', content: null, tool_calls: callsOf(body) });
    send({}, 'tool_calls');
  } else if (body.response_format !== undefined) {
    await after(WORD_MS);
    send({ content: VERDICT });
    send({}, 'stop');
  } else {
    const said = body.messages.findLast(({ role }) => role === 'user')?.content ?? '';
    for (const word of `You said: ${said}`.match(/\s*\S+/g) ?? []) {
      await after(/ slowly$/.test(said) ? SLOW_WORD_MS : WORD_MS);
      if (response.destroyed) return;
      send({ content: word });
    }
    send({}, 'stop');
  }
  response.end('data: [DONE]\n\n');
}

/** First the tools, with the run's key; then the output, with their results. */
function callsOf({ messages, tools }: Request): Delta[] {
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content ?? '');
  const call = (index: number, name: string, args: object) => ({
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  });
  const key = /"key":"([\w-]+)"/.exec(messages.find(({ role }) => role === 'user')?.content ?? '')?.[1] ?? '';
  const names = tools.map(({ function: { name } }) => name).filter((name) => name !== 'emit_output');
  if (results.length < names.length) return names.map((name, index) => call(index, name, { key }));
  // The result of a tool begins with its name; that of a failed call does not.
  const looked = results.find((text) => text.includes('looked')) ?? '';
  return [call(0, 'emit_output', { booked: results.find((text) => text !== looked) ?? '', looked })];
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}
