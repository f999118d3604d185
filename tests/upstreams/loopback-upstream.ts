import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import type { LoopbackUpstream, UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';

/** Bound of the recorded requests; a test that sends more reads only the first. */
const MAX_RETAINED = 10_000;
/** More than any reader accepts for one line. */
const ENDLESS_BYTES = 64 * 1024 * 1024;
const WRITE_BYTES = 256 * 1024;

interface Received {
  body: unknown;
  /** As it came. */
  text: string;
  headers: IncomingMessage['headers'];
  path: string;
}

/** One server-sent event; `head` comes before any text: faults follow it. */
export interface UpstreamEvent {
  data: string;
  kind: 'head' | 'text' | 'rest';
}

/** How one dialect says what a scenario contains. */
export interface UpstreamDialect {
  /** Of the adapter's base URL. */
  basePath: string;
  /** The body of any GET; absent: there is none. */
  getBody?: unknown;
  /** The `event:` field of an event with this data; null or absent: it has none. */
  eventName?(data: string): string | null;
  /** Why the vendor refuses a request that breaks its rules; absent: it is not checked. */
  refusalOf?(body: unknown, path: string): NonNullable<UpstreamScenario['refuse']> | null;
  /** The answer to a question of the agent's engine, and the question's name; null or absent: the body is none, and the scenario answers. */
  engineAnswerOf?(body: unknown): { name: string; text: string } | null;
  /** A healthy stream, without the end mark. */
  eventsOf(scenario: UpstreamScenario): UpstreamEvent[];
  /** Null: the end of the body is the mark. */
  endMark: string | null;
  /** The usage alone, for scenarios where it follows the end mark. */
  lateUsage: string;
  wholeAnswer(scenario: UpstreamScenario): unknown;
  refusalBody(refusal: NonNullable<UpstreamScenario['refuse']>): unknown;
  errorEvent(code: number | string): string;
  /** An event cut in the middle. */
  malformed: string;
  /** Headers of a refusal; absent: none beside those of JSON. */
  refusalHeaders?(refusal: NonNullable<UpstreamScenario['refuse']>): Record<string, string>;
  /** How events are framed; absent: as server-sent events. */
  framing?: Framing;
}

interface Framing {
  contentType: string;
  frame(data: string): Uint8Array;
  /** The begin of a frame that is longer than any reader accepts. */
  endlessHead: Uint8Array;
}

const SERVER_SENT_EVENTS = 'text/event-stream; charset=utf-8';

export interface RecordingUpstream extends LoopbackUpstream {
  /** Without questions of the agent's engine. */
  readonly requests: readonly Received[];
  /** Of the agent's engine, which come by themselves. */
  readonly questions: readonly Received[];
  /** How long the engine waits for an answer, by the question's name; at first not at all. */
  answerQuestionsAfter(msOf: (name: string) => number): void;
  /** Checks no rule of the vendor from now on. */
  takeAnything(): void;
}

/** A real HTTP server on loopback that speaks a dialect and has the faults of real upstreams on demand. */
export async function openLoopbackUpstream(dialect: UpstreamDialect): Promise<RecordingUpstream> {
  let scenarios: UpstreamScenario[] = [{}];
  const requests: Received[] = [];
  const questions: Received[] = [];
  let connections = 0;
  let aborts = 0;
  let takesAnything = false;
  let questionMsOf: (name: string) => number = () => 0;

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
      requests.push({ body: null, text: '', headers: request.headers, path: request.url ?? '' });
      response.end(JSON.stringify(dialect.getBody));
      return;
    }
    readBody(request)
      .then((text) => {
        const body: unknown = JSON.parse(text);
        const engineAnswer = dialect.engineAnswerOf?.(body) ?? null;
        const received = engineAnswer === null ? requests : questions;
        if (received.length < MAX_RETAINED) received.push({ body, text, headers: request.headers, path: request.url ?? '' });
        if (engineAnswer !== null) return play(dialect, { text: [engineAnswer.text], headersAfterMs: questionMsOf(engineAnswer.name) }, response, breakOff);
        const [scenario = {}] = scenarios.length > 1 ? scenarios.splice(0, 1) : scenarios;
        const refuse = scenario.refuse ?? (takesAnything ? null : dialect.refusalOf?.(body, request.url ?? ''));
        return play(dialect, refuse ? { ...scenario, refuse } : scenario, response, breakOff);
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
    baseUrl: `http://127.0.0.1:${port}${dialect.basePath}`,
    answer(...next) {
      scenarios = next.length === 0 ? [{}] : next;
    },
    requests,
    questions,
    answerQuestionsAfter(msOf) {
      questionMsOf = msOf;
    },
    takeAnything() {
      takesAnything = true;
    },
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

async function readBody(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

async function play(dialect: UpstreamDialect, scenario: UpstreamScenario, response: ServerResponse, breakOff: () => void): Promise<void> {
  const { refuse, fault, after: afterPieces = 0, newline = '\n', pieceBytes = WRITE_BYTES } = scenario;
  if (fault === 'silent') return;
  if (fault === 'hang-up') return breakOff();
  if (scenario.headersAfterMs) await after(scenario.headersAfterMs);
  if (refuse) return sendJson(response, refuse.status, dialect.refusalBody(refuse), { ...dialect.refusalHeaders?.(refuse), ...refuse.headers });
  if (scenario.isWhole) return sendJson(response, 200, dialect.wholeAnswer(scenario));
  if (fault === 'garbage') {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>data: a proxy of the provider says hello</html>\n\n');
    return;
  }
  response.writeHead(200, { 'content-type': dialect.framing?.contentType ?? SERVER_SENT_EVENTS });
  response.flushHeaders();
  const send = async (data: string) => {
    const name = dialect.eventName?.(data) ?? null;
    const text = `${name === null ? '' : `event: ${name}${newline}`}data: ${data}${newline}${newline}`;
    const bytes = dialect.framing?.frame(data) ?? Buffer.from(text);
    for (let at = 0; at < bytes.length && !response.destroyed; at += pieceBytes) await write(response, bytes.subarray(at, at + pieceBytes));
  };
  const events = dialect.eventsOf(scenario);
  const texts = events.filter(({ kind }) => kind === 'text').length;
  let sentTexts = 0;
  for (const { data, kind } of events) {
    if (fault && sentTexts >= Math.min(afterPieces, texts) && kind !== 'head') return misbehave(dialect, scenario, { response, send, breakOff });
    if (kind === 'text' && scenario.delayMs) await after(scenario.delayMs);
    await send(data);
    if (kind === 'text') sentTexts += 1;
  }
  if (!scenario.hasNoEndMarker && dialect.endMark !== null) await send(dialect.endMark);
  if (scenario.usage === 'after-end') await send(dialect.lateUsage);
  if (!scenario.staysOpen) response.end();
}

function sendJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

interface Wire {
  response: ServerResponse;
  send(data: string): Promise<void>;
  breakOff(): void;
}

async function misbehave(dialect: UpstreamDialect, { fault, errorCode }: UpstreamScenario, { response, send, breakOff }: Wire): Promise<void> {
  switch (fault) {
    case 'cut':
      return breakOff();
    case 'ends-early':
      response.end();
      return;
    case 'malformed':
      await send(dialect.malformed);
      response.end();
      return;
    case 'error-event':
      await send(dialect.errorEvent(errorCode ?? 500));
      response.end();
      return;
    case 'endless-line':
      await write(response, dialect.framing?.endlessHead ?? Buffer.from('data: '));
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
