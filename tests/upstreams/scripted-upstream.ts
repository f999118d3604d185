import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { z } from 'zod';

/** Bound of the recorded requests, and of the connections of the unresponsive server; a test that makes more is wrong. */
const MAX_RETAINED = 20_000;

/**
 * What the upstream does with one request, in order. Without a `status` it answers 200 with a stream, whose headers leave with the first
 * step behind `headers` or with the first bytes.
 *
 *   refuse      another status, with an error, and nothing behind it
 *   headers     the headers of a stream
 *   say         one chunk with a piece of the text; `times` repeats it, `everyMs` apart
 *   raw         bytes as they are
 *   letters     one chunk with this number of letters
 *   finish      the chunk with the reason for the end
 *   usage, done the chunk with the counts; the end mark
 *   pauseMs     waits
 *   hold        waits until the test releases the call
 *   end, cut    ends the answer in order; breaks the connection
 */
const step = z.union([
  z.strictObject({ refuse: z.number(), headers: z.record(z.string(), z.string()).optional() }),
  z.strictObject({ say: z.string(), times: z.number().optional(), everyMs: z.number().optional() }),
  z.strictObject({ raw: z.string() }),
  z.strictObject({ letters: z.number() }),
  z.strictObject({ pauseMs: z.number() }),
  z.enum(['headers', 'finish', 'usage', 'done', 'hold', 'end', 'cut']),
]);
export type Step = z.infer<typeof step>;

const plan = z.strictObject({
  /** Name of the call. */
  name: z.string(),
  /** By provider: the steps of its first request, its second …; the last are repeated. */
  scripts: z.record(z.string(), z.array(z.array(step))),
  newline: z.string().optional(),
  /** Bytes of each write. */
  pieceBytes: z.number().optional(),
});
/** The script of the upstream. It stands in the request's last message, as JSON, so that calls may be concurrent. */
export type Plan = z.infer<typeof plan>;

/** A request at the upstream. Times are those of `performance.now()`. */
export interface UpstreamCall {
  provider: string;
  atMs: number;
  /** Chunks of text that the kernel has accepted so far. */
  said: number;
  /** When its client closed the connection before the response was complete; else null. */
  leftAtMs: number | null;
  /** Whether its connection is in use for it. */
  isOpen: boolean;
}

export interface ScriptedUpstream {
  /** `base_url` of a provider. */
  baseUrl(provider: string): string;
  /** The requests of a call so far. */
  calls(name: string): readonly UpstreamCall[];
  /** Releases all calls that `hold`, now or later. */
  release(name: string): void;
  close(): Promise<void>;
}

/** A real HTTP server on loopback with OpenAI's POST /chat/completions, which executes the script in each request. */
export async function openScriptedUpstream(): Promise<ScriptedUpstream> {
  const book = new Map<string, UpstreamCall[]>();
  const gates = new Map<string, { opened: Promise<void>; open(): void }>();
  const gateOf = (name: string) => {
    const gate = gates.get(name) ?? newGate();
    gates.set(name, gate);
    return gate;
  };
  let retained = 0;
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const asked = planIn(await readBody(request));
    const provider = request.url?.split('/')[1] ?? '';
    const call: UpstreamCall = { provider, atMs: performance.now(), said: 0, leftAtMs: null, isOpen: true };
    const calls = book.get(asked.name) ?? [];
    const before = calls.filter((one) => one.provider === provider).length;
    retained += 1;
    if (retained > MAX_RETAINED) throw new Error('too many requests came');
    book.set(asked.name, [...calls, call]);
    const scripts = asked.scripts[provider] ?? [];
    const steps = scripts[Math.min(before, scripts.length - 1)];
    if (steps === undefined) throw new Error(`${asked.name} has no script for ${provider}`);
    let isOurs = false;
    const breakOff = () => {
      isOurs = true;
      response.socket?.destroy();
    };
    response.on('close', () => {
      call.isOpen = false;
      if (!response.writableFinished && !isOurs) call.leftAtMs = performance.now();
    });
    await perform(steps, asked, { response, call, opened: gateOf(asked.name).opened, breakOff });
  };
  const server = createServer((request, response) => {
    // A request without a script fails the call that it belongs to.
    serve(request, response).catch(() => response.socket?.destroy());
  });
  const port = await listening(server);
  return {
    baseUrl: (provider) => `http://127.0.0.1:${port}/${provider}/v1`,
    calls: (name) => book.get(name) ?? [],
    release: (name) => gateOf(name).open(),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A connection at the unresponsive server. */
interface DeafConnection {
  openedAtMs: number;
  closedAtMs: number | null;
}

export interface UnresponsiveUpstream {
  /** Of HTTPS: a client waits for a handshake that never comes, and so is still connecting. */
  baseUrl: string;
  readonly connections: readonly DeafConnection[];
  close(): Promise<void>;
}

/** A server that accepts connections and never sends anything. */
export async function openDeafUpstream(): Promise<UnresponsiveUpstream> {
  const connections: DeafConnection[] = [];
  const open = new Set<Socket>();
  const server = createTcpServer((socket) => {
    const connection: DeafConnection = { openedAtMs: performance.now(), closedAtMs: null };
    if (connections.length < MAX_RETAINED) connections.push(connection);
    open.add(socket);
    // Without reading, a closed connection would not be noticed.
    socket.resume();
    socket.on('error', () => {});
    socket.on('close', () => {
      open.delete(socket);
      connection.closedAtMs = performance.now();
    });
  });
  const port = await listening(server);
  return {
    baseUrl: `https://127.0.0.1:${port}/v1`,
    connections,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** A port at which no process listens. */
export async function closedBaseUrl(): Promise<string> {
  const server = createTcpServer();
  const port = await listening(server);
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}/v1`;
}

interface Stage {
  response: ServerResponse;
  call: UpstreamCall;
  /** Resolves when the test releases the call. */
  opened: Promise<void>;
  breakOff(): void;
}

async function perform(steps: readonly Step[], { newline = '\n', pieceBytes }: Plan, { response, call, opened, breakOff }: Stage): Promise<void> {
  const begin = () => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' }).flushHeaders();
  };
  const write = async (text: string) => {
    begin();
    const bytes = Buffer.from(text);
    const size = pieceBytes ?? bytes.length;
    for (let at = 0; at < bytes.length && !response.destroyed; at += size) await written(response, bytes.subarray(at, at + size));
  };
  const send = (data: string) => write(`data: ${data}${newline}${newline}`);
  const say = async (content: string) => {
    await send(chunk([{ index: 0, delta: { content }, finish_reason: null }]));
    call.said += 1;
  };
  for (const one of steps) {
    if (response.destroyed) return;
    if (one === 'headers') begin();
    else if (one === 'finish') await send(chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]));
    else if (one === 'usage') await send(chunk([], { prompt_tokens: 12, completion_tokens: 5, total_tokens: 17 }));
    else if (one === 'done') await send('[DONE]');
    else if (one === 'hold') await opened;
    else if (one === 'end') response.end();
    else if (one === 'cut') breakOff();
    else if ('refuse' in one) refuse(one.refuse, one.headers ?? {}, response);
    else if ('raw' in one) await write(one.raw);
    else if ('letters' in one) await say('x'.repeat(one.letters));
    else if ('pauseMs' in one) await after(one.pauseMs);
    else {
      for (let time = 0; time < (one.times ?? 1) && !response.destroyed; time += 1) {
        if (time > 0 && one.everyMs !== undefined) await after(one.everyMs);
        await say(one.times === undefined ? one.say : `${one.say}${time} `);
      }
    }
  }
}

function chunk(choices: readonly object[], usage?: object): string {
  const head = { id: 'chatcmpl-acting', object: 'chat.completion.chunk', created: 1_700_000_000, model: 'acting-model' };
  return JSON.stringify({ ...head, choices, ...(usage === undefined ? {} : { usage }) });
}

function refuse(status: number, headers: Record<string, string>, response: ServerResponse): void {
  const error = { message: `refused with ${status}`, type: 'acting_error', param: null, code: null };
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify({ error }));
}

function planIn(body: string): Plan {
  const { messages } = z.looseObject({ messages: z.array(z.looseObject({ content: z.unknown() })) }).parse(JSON.parse(body));
  return plan.parse(JSON.parse(z.string().parse(messages.at(-1)?.content)));
}

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

/** Resolves when the kernel has accepted the bytes, or the connection is closed. */
function written(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) resolve();
    else response.write(bytes, () => resolve());
  });
}

function newGate(): { opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

async function listening(server: { listen(port: number, host: string, onListening: () => void): unknown; address(): unknown }): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return z.object({ port: z.number() }).parse(server.address()).port;
}
