import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { z } from 'zod';

/** One request that came again, or did not. */
interface Asked {
  /** The messages without the system's, and so the same for a call that is made again and for no other. */
  call: string;
  /** Whether its client left before the answer was complete. */
  left: boolean;
}

export interface ModelUpstream {
  baseUrl: string;
  /** What the agent says to a message. */
  answerTo(text: string): string;
  /** Requests so far. */
  readonly asked: number;
  /** Requests that are being answered. */
  readonly inFlight: number;
  /** How often the call that came most often came, of those that were first made after `since` requests; and how many came more than once. */
  repeats(since: number): { most: number; extra: number };
  close(): Promise<void>;
}

/** Requests that are remembered; a pass makes far fewer. */
const MAX_RETAINED = 200_000;
const WORD_MS = 15;
/** A word of a message that the model is to take its time over. */
const SLOW_WORD_MS = 120;

const message = z.looseObject({ role: z.string(), content: z.string().nullish() });
const request = z.looseObject({ messages: z.array(message), tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).default([]) });
type Request = z.infer<typeof request>;
type Delta = Record<string, unknown>;

/**
 * The agent's model, a real HTTP server that speaks POST /chat/completions as OpenAI does. A customer hears his own words. A run calls both
 * of its tools, and gives as its output what they have told it.
 */
export async function openModelUpstream(): Promise<ModelUpstream> {
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
    await answer(body, response);
  };
  const server = createServer((incoming, response) => {
    // A request that is none of ours fails the call that it belongs to.
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

/** First the tools that it may call, under the run's own key; then the end, with what they have told. */
function callsOf({ messages, tools }: Request): Delta[] {
  const told = messages.filter(({ role }) => role === 'tool').map(({ content }) => content ?? '');
  const call = (index: number, name: string, args: object) => ({
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args) },
  });
  const key = /"key":"([\w-]+)"/.exec(messages.find(({ role }) => role === 'user')?.content ?? '')?.[1] ?? '';
  const offered = tools.map(({ function: { name } }) => name).filter((name) => name !== 'emit_output');
  if (told.length < offered.length) return offered.map((name, index) => call(index, name, { key }));
  // Each tool begins its answer with its name; what a call failed with has none.
  const looked = told.find((text) => text.includes('looked')) ?? '';
  return [call(0, 'emit_output', { booked: told.find((text) => text !== looked) ?? '', looked })];
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}
