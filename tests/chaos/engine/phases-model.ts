import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { z } from 'zod';
import { type Gates, keyIn, type Phase } from './phases.ts';

export interface AskedCall {
  phase: Phase;
  times: number;
  /** Whether it was in flight until the gates were opened. */
  isHeld: boolean;
}

export interface PhasesModel {
  baseUrl: string;
  /** How often each call of a key was asked. Repeats of a call have its prompt. */
  asked(key: string): AskedCall[];
  close(): Promise<void>;
}

/** Bound of the calls that are recorded; a test makes far fewer. */
const MAX_RETAINED = 10_000;

const request = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.unknown() })),
  response_format: z.looseObject({ json_schema: z.looseObject({ name: z.string() }) }).optional(),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).default([]),
});
type Request = z.infer<typeof request>;

/** By the name of the answer's schema. */
const phaseOfSchema: Readonly<Record<string, Phase>> = { next_step: 'routine', check_reply: 'checking', judge_applied: 'tracking' };
/** Answered at once also while others of its turn are held: a turn then has both recorded answers and open calls. */
const NEVER_HELD = 'match_observational';

/** The agent's model, over OpenAI's POST /chat/completions: every condition holds, each step is completed, and each tool is called. */
export async function openPhasesModel(gates: Gates): Promise<PhasesModel> {
  const calls = new Map<string, AskedCall & { key: string }>();
  const serve = async (incoming: IncomingMessage, response: ServerResponse) => {
    const body = request.parse(JSON.parse(await readBody(incoming)));
    const prompt = JSON.stringify(body.messages);
    const [key, phase] = [keyIn(prompt), phaseOf(body)];
    const call = calls.get(prompt) ?? { key, phase, times: 0, isHeld: false };
    if (calls.size >= MAX_RETAINED) throw new Error('too many calls came');
    calls.set(prompt, call);
    call.times += 1;
    const onHeld = () => {
      call.isHeld = true;
    };
    if (body.response_format?.json_schema.name !== NEVER_HELD) await gates.pass(phase, key, onHeld);
    if (!response.destroyed) await answer(body, key, response, () => gates.pass('streaming', key, onHeld));
  };
  const server = createServer((incoming, response) => {
    // A request of another shape fails the call that it belongs to.
    serve(incoming, response).catch(() => response.socket?.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = z.object({ port: z.number() }).parse(server.address());
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    asked: (key) => [...calls.values()].filter((call) => call.key === key),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function phaseOf({ response_format: format, tools }: Request): Phase {
  if (format !== undefined) return phaseOfSchema[format.json_schema.name] ?? 'matching';
  return tools.length > 0 ? 'inferring' : 'composing';
}

async function answer(body: Request, key: string, response: ServerResponse, midway: () => Promise<void>): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders();
  const send = (delta: Record<string, unknown>, finish: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    response.write(`data: ${JSON.stringify({ id: 'chatcmpl-phases', object: 'chat.completion.chunk', created: 1, model: 'phases', choices })}\n\n`);
  };
  const schema = body.response_format?.json_schema.name;
  if (schema !== undefined) {
    send({ content: JSON.stringify(verdictsOn(schema, body)) });
    send({}, 'stop');
  } else if (body.tools.length > 0) {
    send({ role: 'assistant', content: null, tool_calls: toolCalls(body, key) });
    send({}, 'tool_calls');
  } else {
    send({ content: 'It is done: ' });
    await midway();
    send({ content: `${key}.` });
    send({}, 'stop');
  }
  response.end('data: [DONE]\n\n');
}

function verdictsOn(schema: string, { messages }: Request): object {
  const rationale = 'so it is';
  if (schema === 'next_step') return { rationale, step_completed: true, choice: '1' };
  if (schema === 'check_backtrack') return { rationale, requires_backtracking: false, same_process: true };
  const lines = String(messages.at(-1)?.content).split('\n');
  const items = lines.filter((line) => line.startsWith('{'));
  return { verdicts: items.map((_, index) => ({ id: index + 1, rationale, applies: true, followed: true })) };
}

function toolCalls({ tools }: Request, key: string): object[] {
  const names = tools.map((tool) => tool.function.name).filter((name) => name.startsWith('ledger'));
  return names.map((name, index) => ({ index, id: `call_${index}`, type: 'function', function: { name, arguments: JSON.stringify({ key }) } }));
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}
