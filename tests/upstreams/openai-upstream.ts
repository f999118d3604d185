import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import type { LoopbackUpstream, UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';

/** Bound of the recorded requests; a test that sends more reads only the first. */
const MAX_RETAINED = 10_000;
/** More than any reader accepts for one line. */
const ENDLESS_BYTES = 64 * 1024 * 1024;
const WRITE_BYTES = 256 * 1024;
/** The models that it lists; it answers for any. */
const MODELS = ['local-small', 'local-large'];

interface Received {
  body: unknown;
  headers: IncomingMessage['headers'];
  path: string;
}

export interface OpenAiUpstream extends LoopbackUpstream {
  readonly requests: readonly Received[];
}

/** A real HTTP server on loopback with OpenAI's POST /chat/completions and GET /models, and the faults of compatible servers on demand. */
export async function openOpenAiUpstream(): Promise<OpenAiUpstream> {
  let scenarios: UpstreamScenario[] = [{}];
  const requests: Received[] = [];
  let connections = 0;
  let aborts = 0;

  const server = createServer((request, response) => {
    // Not counted: connections that the scenario itself ends.
    let isOurs = false;
    response.on('close', () => {
      if (!response.writableFinished && !isOurs) aborts += 1;
    });
    const breakOff = () => {
      isOurs = true;
      response.socket?.destroy();
    };
    if (request.method === 'GET') {
      requests.push({ body: null, headers: request.headers, path: request.url ?? '' });
      response.end(JSON.stringify({ object: 'list', data: MODELS.map((id) => ({ id, object: 'model' })) }));
      return;
    }
    readBody(request)
      .then((body) => {
        if (requests.length < MAX_RETAINED) requests.push({ body, headers: request.headers, path: request.url ?? '' });
        const [scenario = {}] = scenarios.length > 1 ? scenarios.splice(0, 1) : scenarios;
        return play(scenario, response, breakOff);
      })
      .catch(breakOff);
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    answer(...next) {
      scenarios = next.length === 0 ? [{}] : next;
    },
    requests,
    get connections() {
      return connections;
    },
    get aborts() {
      return aborts;
    },
    async close() {
      if (!server.listening) return;
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString('utf8'));
}

async function play(scenario: UpstreamScenario, response: ServerResponse, breakOff: () => void): Promise<void> {
  if (scenario.fault === 'silent') return;
  if (scenario.fault === 'hang-up') return breakOff();
  if (scenario.refuse) return refuse(scenario.refuse, response);
  if (scenario.isWhole) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wholeAnswer(scenario)));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.flushHeaders();
  const { fault, after: afterPieces = 0, newline = '\n', pieceBytes = WRITE_BYTES } = scenario;
  const send = async (data: string) => {
    const bytes = Buffer.from(`data: ${data}${newline}${newline}`);
    for (let at = 0; at < bytes.length && !response.destroyed; at += pieceBytes) await write(response, bytes.subarray(at, at + pieceBytes));
  };
  const chunks = answerChunks(scenario);
  const textChunks = chunks.filter(({ isText }) => isText).length;
  let sentText = 0;
  for (const { chunk, isText } of chunks) {
    if (fault && sentText >= Math.min(afterPieces, textChunks) && (isText || !chunk.choices[0]?.delta.role))
      return misbehave(scenario, response, send, breakOff);
    if (isText && scenario.delayMs) await after(scenario.delayMs);
    await send(JSON.stringify(chunk));
    if (isText) sentText += 1;
  }
  if (!scenario.hasNoEndMarker) await send('[DONE]');
  if (scenario.usage === 'after-end') await send(JSON.stringify({ ...chunkOf({}), choices: [], usage: USAGE }));
  if (!scenario.staysOpen) response.end();
}

function refuse({ status, code, message, headers, param }: NonNullable<UpstreamScenario['refuse']>, response: ServerResponse): void {
  const error = { message: message ?? `refused with ${status}`, type: 'loopback_error', param: param ?? null, code: code ?? null };
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify({ error }));
}

async function misbehave(
  { fault, errorCode }: UpstreamScenario,
  response: ServerResponse,
  send: (data: string) => Promise<void>,
  breakOff: () => void,
): Promise<void> {
  switch (fault) {
    case 'cut':
      return breakOff();
    case 'ends-early':
      response.end();
      return;
    case 'malformed':
      await send('{"id":"chatcmpl-1","choices":[{"index":0,"delta":{"conte');
      response.end();
      return;
    case 'error-event':
      await send(JSON.stringify({ error: { message: 'the engine broke', type: 'server_error', code: errorCode ?? 500 } }));
      response.end();
      return;
    case 'endless-line':
      await write(response, Buffer.from('data: '));
      for (let bytes = 0; bytes < ENDLESS_BYTES && !response.destroyed; bytes += WRITE_BYTES) await write(response, Buffer.alloc(WRITE_BYTES, 'x'));
      return;
    default:
      // A stall: open, and silent.
      return;
  }
}

/** Resolves when the kernel has accepted the bytes, or the connection is closed. */
function write(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) resolve();
    else response.write(bytes, () => resolve());
  });
}

const USAGE = {
  prompt_tokens: 12,
  completion_tokens: 5,
  total_tokens: 17,
  prompt_tokens_details: { cached_tokens: 3, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 1, audio_tokens: 0 },
};

interface Delta {
  role?: string;
  content?: string | null;
  reasoning_content?: string;
  tool_calls?: unknown[];
}

function chunkOf(delta: Delta, finishReason: string | null = null) {
  return {
    id: 'chatcmpl-loopback',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'loopback-model-2026',
    system_fingerprint: null,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    usage: null,
  };
}

function answerChunks(
  scenario: UpstreamScenario,
): { chunk: ReturnType<typeof chunkOf> | { choices: ReturnType<typeof chunkOf>['choices']; usage: object }; isText: boolean }[] {
  const { text = ['Hello ', 'there'], reasoning = [], toolCalls = [], finish = 'stop', usage = 'before-end' } = scenario;
  const calls = toolCalls.flatMap(({ id, name, arguments: pieces }, index) => [
    chunkOf({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    ...pieces.map((piece) => chunkOf({ tool_calls: [{ index, function: { arguments: piece } }] })),
  ]);
  const end = chunkOf({}, finish);
  const plain = (chunk: ReturnType<typeof chunkOf>) => ({ chunk, isText: false });
  return [
    plain(chunkOf({ role: 'assistant', content: '' })),
    ...reasoning.map((piece) => plain(chunkOf({ reasoning_content: piece }))),
    ...text.map((piece) => ({ chunk: chunkOf({ content: piece }), isText: true })),
    ...calls.map(plain),
    plain(end),
    ...(scenario.isFinishedTwice ? [plain(end)] : []),
    ...(usage === 'before-end' ? [{ chunk: { ...chunkOf({}), choices: [], usage: USAGE }, isText: false }] : []),
  ];
}

function wholeAnswer({ text = ['Hello ', 'there'], finish = 'stop' }: UpstreamScenario) {
  const message = { role: 'assistant', content: text.join(''), refusal: null };
  return {
    id: 'chatcmpl-loopback',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'loopback-model-2026',
    choices: [{ index: 0, message, logprobs: null, finish_reason: finish }],
    usage: USAGE,
  };
}
