import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '../../shared/contracts/agent/session.ts';

/** A client of an agent server, over plain HTTP. */
export interface AgentClient {
  createSession(body?: object): Promise<SessionRecord>;
  readSession(sessionId: string): Promise<SessionRecord>;
  changeSession(sessionId: string, changes: object): Promise<SessionRecord>;
  /** Posts a customer's message and returns its event. */
  postMessage(sessionId: string, text: string, fields?: object, headers?: Record<string, string>, query?: string): Promise<ConversationEvent>;
  /** The log from an offset on: one page of the long-poll. */
  poll(sessionId: string, minOffset?: number, query?: string): Promise<ConversationEvent[]>;
  /** Long-polls until an event matches, and returns the whole log up to it. */
  logUntil(sessionId: string, fits: (event: ConversationEvent) => boolean): Promise<ConversationEvent[]>;
  /** Follows the session by SSE until a frame matches; then closes the connection. */
  streamUntil(sessionId: string, fits: (frame: SseFrame) => boolean, headers?: Record<string, string>): Promise<SseFrame[]>;
  /** The same, resolved once the stream is open, so that a later message is followed from its first delta on. */
  openStream(sessionId: string, fits: (frame: SseFrame) => boolean, headers?: Record<string, string>): Promise<{ frames: Promise<SseFrame[]> }>;
}

interface SseFrame {
  id: string | null;
  event: string | null;
  data: Record<string, unknown>;
}

const TIMEOUT_MS = 60_000;

/** @param address where every request goes, or a function that says where the next one goes */
export function agentClient(address: string | (() => string), key: string): AgentClient {
  const urlOf = (path: string) => `${typeof address === 'string' ? address : address()}${path}`;
  const authorization = { authorization: `Bearer ${key}` };
  const json = { ...authorization, 'content-type': 'application/json' };

  async function read<Body>(path: string, init: RequestInit, status: number): Promise<Body> {
    const response = await fetch(urlOf(path), { signal: AbortSignal.timeout(TIMEOUT_MS), ...init });
    if (response.status !== status) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Body;
  }

  const client: AgentClient = {
    createSession: (body = {}) => read('/sessions', { method: 'POST', headers: json, body: JSON.stringify(body) }, 201),
    readSession: (sessionId) => read(`/sessions/${sessionId}`, { headers: authorization }, 200),
    changeSession: (sessionId, changes) => read(`/sessions/${sessionId}`, { method: 'PATCH', headers: json, body: JSON.stringify(changes) }, 200),
    postMessage: (sessionId, text, fields = {}, headers = {}, query = '') => {
      const body = JSON.stringify({ kind: 'user_message', text, ...fields });
      return read(`/sessions/${sessionId}/events${query}`, { method: 'POST', headers: { ...json, ...headers }, body }, 201);
    },
    poll: (sessionId, minOffset = 0, query = '') => read(`/sessions/${sessionId}/events?min_offset=${minOffset}${query}`, { headers: authorization }, 200),
    logUntil: async (sessionId, fits) => {
      const log: ConversationEvent[] = [];
      const limitAtMs = Date.now() + TIMEOUT_MS;
      while (!log.some(fits)) {
        if (Date.now() > limitAtMs) throw new Error(`what was awaited did not come; the log is ${JSON.stringify(log)}`);
        log.push(...(await client.poll(sessionId, log.length)));
      }
      return log;
    },
    streamUntil: async (sessionId, fits, headers = {}) => (await client.openStream(sessionId, fits, headers)).frames,
    openStream: async (sessionId, fits, headers = {}) => {
      const leave = new AbortController();
      const signal = AbortSignal.any([leave.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const response = await fetch(urlOf(`/sessions/${sessionId}/events`), { headers: { ...authorization, accept: 'text/event-stream', ...headers }, signal });
      const follow = async () => {
        const frames: SseFrame[] = [];
        for await (const frame of framesOf(response)) {
          frames.push(frame);
          if (fits(frame)) break;
        }
        leave.abort();
        return frames;
      };
      return { frames: follow() };
    },
  };
  return client;
}

/** The frames of an SSE response, without comments. */
async function* framesOf(response: Response): AsyncGenerator<SseFrame> {
  if (!response.ok || response.body === null) throw new Error(`the stream answered ${response.status}`);
  let text = '';
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + piece).split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const field = (name: string) => block.split('\n').flatMap((line) => (line.startsWith(`${name}: `) ? [line.slice(name.length + 2)] : []))[0] ?? null;
      const data = field('data');
      if (data !== null) yield { id: field('id'), event: field('event'), data: JSON.parse(data) as Record<string, unknown> };
    }
  }
}
