import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { CallbackReceiver } from '../helpers/callback-receiver.ts';
import { readStream } from '../helpers/read-stream.ts';
import type { Cluster } from '../helpers/start-cluster.ts';

/** The kinds of requests of the workload, as the table in docs/guarantees.md names them. */
export const kinds = [
  'post a message',
  'create a session',
  'change a session',
  'trigger a run',
  'read a run',
  'read a session',
  'long-poll',
  'open an event stream',
  'router call',
  'router stream',
  'call with a credit limit',
  'list the models',
  'read the calling key',
  'wrong key',
] as const;
export type Kind = (typeof kinds)[number];

/** One request and its outcome. */
export interface Asked {
  kind: Kind;
  /** `200`, `503 not_ready`, `200 then done`; `cut` when the connection broke off. */
  outcome: string;
  /** Retry-After of a refusal; null without one. */
  retryAfter: string | null;
  begunAtMs: number;
  tookMs: number;
}

/** What was accepted, and what is unknown because its answer was not an acceptance. */
export interface Accepted {
  /** By session: the texts that were answered with 201 or 202, and those that were not. */
  sessions: Map<string, { accepted: string[]; unknown: string[]; changes: string[] }>;
  runs: { runId: string; callback: ReturnType<CallbackReceiver['address']> }[];
}

export interface Traffic {
  asked: readonly Asked[];
  accepted: Accepted;
  /** Begins nothing more, and resolves when every open request is answered. */
  end(): Promise<void>;
}

interface TrafficDeps {
  cluster: Cluster;
  receiver: CallbackReceiver;
}

/** Between two requests of one loop: dozens of each kind in a few seconds, and little load. */
const PAUSE_MS = 150;
/** After this a loop sends its next request, although the last is not answered: what is in flight when the broker is lost waits for its return. */
const NEXT_AFTER_MS = 3_000;
/** More than this means that the traffic is never ended. */
const MAX_ASKED = 50_000;
/** Longer than any request may take: the table has up to 60 s, for what is redelivered after the broker's return. */
const TIMEOUT_MS = 70_000;
const ROUTINE = 'triage-warranty-claim';
const CLAIM = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The pump is loud.' };

const agentBody = z.looseObject({ id: z.string().optional(), run_id: z.string().optional(), code: z.string().optional() });
const madeKey = z.looseObject({ key: z.string() });
const routerBody = z.looseObject({ error: z.looseObject({ type: z.string() }).optional() });

/** Sends every kind of request to all gateways in turn, until it is ended. */
export async function beginTraffic({ cluster, receiver }: TrafficDeps): Promise<Traffic> {
  const asked: Asked[] = [];
  const accepted: Accepted = { sessions: new Map(), runs: [] };
  const asker = newAsker(cluster, asked);
  const talk = await openTalk(asker, accepted);
  const runOnce = () => trigger(asker, accepted, receiver);
  await runOnce();
  const [first] = accepted.runs;
  const idle = await newSession(asker, accepted);
  const limited = await keyWithLimit(cluster);
  const router = { url: () => cluster.routerUrls, key: cluster.keys.routerKey };
  const works: (() => Promise<unknown>)[] = [
    () => talk.say(0),
    () => talk.say(1),
    () => talk.change(),
    () => newSession(asker, accepted),
    runOnce,
    () => asker.agent('read a run', 'GET', `/runs/${first?.runId}`),
    () => asker.agent('read a session', 'GET', `/sessions/${idle}`),
    () => asker.agent('long-poll', 'GET', `/sessions/${idle}/events?min_offset=1000&wait_for_data=1`),
    () => asker.eventStream(`/sessions/${idle}/events?min_offset=1000`),
    () => asker.router('router call', { ...router, body: { messages: [{ role: 'user', content: 'Hello!' }] } }),
    () => asker.router('router stream', { ...router, body: { stream: true, messages: [{ role: 'user', content: '!slow 30 Hello!' }] } }),
    () => asker.router('call with a credit limit', { ...router, key: limited, body: { messages: [{ role: 'user', content: 'Hello!' }] } }),
    () => asker.router('list the models', { ...router, path: '/api/v1/models' }),
    () => asker.router('read the calling key', { ...router, path: '/api/v1/key' }),
    () => asker.router('wrong key', { ...router, key: 'sk-unknown', body: { messages: [{ role: 'user', content: 'Hello!' }] } }),
  ];
  let isOver = false;
  const all = works.map(async (work) => {
    const begun: Promise<unknown>[] = [];
    while (!isOver && asked.length < MAX_ASKED) {
      const answered = work();
      begun.push(answered);
      await Promise.race([answered, delay(NEXT_AFTER_MS)]);
      await delay(PAUSE_MS);
    }
    await Promise.all(begun);
  });
  return {
    asked,
    accepted,
    end: async () => {
      isOver = true;
      await Promise.all(all);
      if (asked.length >= MAX_ASKED) throw new Error('the traffic was never ended');
    },
  };
}

/** The secret of a key that is made over HTTP. */
async function keyWithLimit({ routerUrls, keys }: Cluster): Promise<string> {
  const response = await fetch(`${routerUrls[0]}/api/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.managementKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'with a limit', limit: 1_000 }),
  });
  return madeKey.parse(await response.json()).key;
}

/** A response as it is recorded. */
interface Answer {
  status: number | null;
  body: unknown;
}

interface RouterRequest {
  url(): readonly string[];
  key: string;
  path?: string;
  body?: object;
}

type Asker = ReturnType<typeof newAsker>;

function newAsker(cluster: Cluster, asked: Asked[]) {
  let turn = 0;
  const next = (urls: readonly string[]) => urls[turn++ % urls.length] ?? '';
  const agentHeaders = { authorization: `Bearer ${cluster.keys.agentKey}`, 'content-type': 'application/json' };

  /** @param read the outcome in words, from the response's body */
  async function ask(kind: Kind, url: string, init: RequestInit, read: (text: string) => string): Promise<Answer> {
    const begunAtMs = performance.now();
    const record = (outcome: string, retryAfter: string | null) =>
      void asked.push({ kind, outcome, retryAfter, begunAtMs, tookMs: Math.round(performance.now() - begunAtMs) });
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
      const text = await response.text();
      const words = read(text);
      record(`${response.status}${words === '' ? '' : ` ${words}`}`, response.headers.get('retry-after'));
      return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : null };
    } catch (error) {
      record(error instanceof DOMException ? 'no answer' : 'cut', null);
      return { status: null, body: null };
    }
  }

  return {
    agent: (kind: Kind, method: string, path: string, fields?: object, headers: Record<string, string> = {}) =>
      ask(kind, `${next(cluster.agentUrls)}${path}`, { method, headers: { ...agentHeaders, ...headers }, ...bodyOf(fields) }, agentWords),
    router: (kind: Kind, { url, key, path = '/api/v1/chat/completions', body }: RouterRequest) => {
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const init = { method: body === undefined ? 'GET' : 'POST', headers, ...bodyOf(body) };
      return ask(kind, `${next(url())}${path}`, init, routerWords);
    },
    /** Opens a stream, and closes it as soon as its head has come. */
    eventStream: async (path: string) => {
      const begunAtMs = performance.now();
      const leave = new AbortController();
      const signal = AbortSignal.any([leave.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const headers = { ...agentHeaders, accept: 'text/event-stream' };
      const response = await fetch(`${next(cluster.agentUrls)}${path}`, { headers, signal }).catch(() => null);
      const words = response === null || response.status === 200 ? '' : agentWords(await response.text());
      const outcome = response === null ? 'cut' : `${response.status}${words === '' ? '' : ` ${words}`}`;
      const tookMs = Math.round(performance.now() - begunAtMs);
      asked.push({ kind: 'open an event stream', outcome, retryAfter: response?.headers.get('retry-after') ?? null, begunAtMs, tookMs });
      leave.abort();
    },
  };
}

function bodyOf(fields: object | undefined): { body?: string } {
  return fields === undefined ? {} : { body: JSON.stringify(fields) };
}

/** The code of a refusal. */
function agentWords(text: string): string {
  return text.startsWith('{') ? (agentBody.parse(JSON.parse(text)).code ?? '') : '';
}

/** The type of a refusal, or how a stream ended. */
function routerWords(text: string): string {
  if (text.startsWith('{')) return routerBody.parse(JSON.parse(text)).error?.type ?? '';
  if (!text.includes('data: ')) return '';
  const { ends, behindEnd } = readStream(text);
  return behindEnd > 0 || ends.length !== 1 ? `then ${ends.join(' and ') || 'silence'}` : ends[0] === 'done' ? 'then done' : `then error ${ends[0]}`;
}

async function newSession(asker: Asker, { sessions }: Accepted): Promise<string | null> {
  const { status, body } = await asker.agent('create a session', 'POST', '/sessions', {});
  const id = status === 201 ? agentBody.parse(body).id : undefined;
  if (id === undefined) return null;
  sessions.set(id, { accepted: [], unknown: [], changes: [] });
  return id;
}

/** Two sessions that are posted to and patched all the time. */
async function openTalk(asker: Asker, accepted: Accepted) {
  const ids = [await newSession(asker, accepted), await newSession(asker, accepted)];
  let said = 0;
  const sessionAt = (index: number) => {
    const id = ids[index % ids.length] ?? '';
    const session = accepted.sessions.get(id);
    if (session === undefined) throw new Error('a session could not be created before the traffic began');
    return { id, session };
  };
  return {
    say: async (index: number) => {
      const { id, session } = sessionAt(index);
      said += 1;
      const text = `How long is the warranty of number ${said}?`;
      // Recorded before it is sent, so that it is never missing.
      session.unknown.push(text);
      const { status } = await asker.agent('post a message', 'POST', `/sessions/${id}/events`, { kind: 'user_message', text });
      if (status !== 201 && status !== 202) return;
      session.unknown.splice(session.unknown.indexOf(text), 1);
      session.accepted.push(text);
    },
    change: async () => {
      said += 1;
      const { id, session } = sessionAt(said);
      const name = `change-${said}`;
      const { status } = await asker.agent('change a session', 'PATCH', `/sessions/${id}`, { metadata: { set: { [name]: true } } });
      if (status === 200) session.changes.push(name);
    },
  };
}

async function trigger(asker: Asker, { runs }: Accepted, receiver: CallbackReceiver): Promise<void> {
  const callback = receiver.address(204);
  const { status, body } = await asker.agent('trigger a run', 'POST', `/routines/${ROUTINE}/trigger`, { input: CLAIM, callback_url: callback.url });
  if (status === 202) runs.push({ runId: agentBody.parse(body).run_id ?? '', callback });
}
