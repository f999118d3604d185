import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterProcess } from '../../scripts/servers/start-cluster.mjs';
import { get, post } from '../../services/router-gateway/test-support/http-client.ts';
import { readStream, receivedOf } from '../helpers/read-stream.ts';
import { plannedCall, requestFor } from '../helpers/scripted-deployment.ts';
import { type Environment, TIMEOUT_MS } from './environment.ts';

/** The gateways of a cluster whose processes are ended. */
export interface Gateways {
  nextRouterUrl(): string;
  /** Processes that received a signal, or are about to. */
  ended: ReadonlySet<ClusterProcess>;
}

/** A call with a scripted provider. */
export interface StreamedCall {
  /** Name of its plan. */
  name: string;
  /** The text of a complete answer. */
  whole: string;
  /** Below the address of a gateway; absent: that of chats. */
  path?: string;
  body: object;
  key: string;
  headers?: Record<string, string>;
}

/** A response that was not a stream, or a stream that ended with an error, for finding its cause. */
interface Failure {
  status: number;
  gateway: string;
  /** ISO 8601, when it had arrived. */
  at: string;
  headers: object;
  /** Of a stream its end. */
  body: string;
}

/** How a client's stream ended, with what preceded the end. */
export interface ReadToEnd {
  /** Name of its call at the upstream. */
  call: string;
  /** The text of a complete answer. */
  whole: string;
  /** What was received, over all connections. */
  text: string;
  ends: ('done' | number)[];
  behindEnd: number;
  /** Whether it was cut when its gateway ended, and, if so, whether another gateway continued it. */
  wasCut: boolean;
  wasResumed: boolean;
  /** The status of a response that was not a stream; null for a stream. */
  refusedWith: number | null;
  failure: Failure | null;
  /** Null: no response has begun. */
  generationId: string | null;
  /** Of the usage chunk, in US dollars; null without one, or without prices. */
  cost: number | null;
  /** Why the end of the connection is a fault; null when it is allowed. */
  fault: string | null;
}

const WORDS = 30;
const EVERY_MS = 40;
const RETRY_MS = 200;
/** Some events. */
const END_CHARS = 1_000;
/** Statuses that ask a client to retry, or that say that no frame exists yet. */
const RETRIABLE = new Set([408, 429, 502, 503, 504]);

let calls = 0;

/** A call of some seconds under the key of the file: in turn a chat and a response. */
export function streamedWords({ cluster }: Environment): StreamedCall {
  const plan = plannedCall({ first: [{ say: 'word', times: WORDS, everyMs: EVERY_MS }, 'finish', 'usage', 'done', 'end'] });
  const whole = Array.from({ length: WORDS }, (_, index) => `word${index} `).join('');
  const { messages, ...request } = { ...requestFor(plan, 'first', true), user: plan.name };
  const call = { name: plan.name, whole, key: cluster.keys.routerKey };
  calls += 1;
  if (calls % 2 === 0) return { ...call, path: '/api/v1/responses', body: { ...request, input: messages } };
  return { ...call, body: { ...request, messages } };
}

/** Streams one answer, and resumes at another gateway when its own has ended. */
export async function readToEnd(gateways: Gateways, call: StreamedCall): Promise<ReadToEnd> {
  const read = nothingRead(call);
  const gateway = gateways.nextRouterUrl();
  const { answer } = post(`${gateway}${call.path ?? '/api/v1/chat/completions'}`, call.body, headersOf(call));
  const first = await answer.catch(() => null);
  if (first === null) {
    read.wasCut = true;
    read.fault = isDying(gateways, gateway) ? null : 'a running gateway closed the connection without an answer';
    return read;
  }
  read.generationId = first.headers['x-generation-id']?.toString() ?? null;
  const isWhole = await inTime(first.ended);
  if (first.status !== 200) {
    read.refusedWith = first.status;
    read.failure = failureOf(gateway, first, first.text);
    read.fault = RETRIABLE.has(first.status) ? null : `it was answered ${first.status}: ${first.text}`;
    return read;
  }
  const received = receivedOf(first.text);
  take(read, received);
  if (typeof read.ends[0] === 'number') read.failure = failureOf(gateway, first, received.slice(-END_CHARS));
  if (read.ends.length > 0) return read;
  read.wasCut = true;
  if (isWhole || !isDying(gateways, gateway)) {
    read.fault = `the stream ended in silence (${isWhole ? 'in order' : 'broken'}) after ${JSON.stringify(received.slice(-200))}`;
    return read;
  }
  await resume(gateways, call, read, received);
  return read;
}

function nothingRead({ name, whole }: StreamedCall): ReadToEnd {
  const nothing = {
    text: '',
    ends: [],
    behindEnd: 0,
    wasCut: false,
    wasResumed: false,
    refusedWith: null,
    failure: null,
    generationId: null,
    cost: null,
    fault: null,
  };
  return { call: name, whole, ...nothing };
}

function failureOf(gateway: string, { status, headers }: { status: number; headers: object }, body: string): Failure {
  return { status, gateway, at: new Date().toISOString(), headers, body };
}

/** Resumes where the first connection was cut, as a client does. A call whose first frames are no longer stored must be refused as such. */
async function resume(gateways: Gateways, call: StreamedCall, read: ReadToEnd, received: string): Promise<void> {
  const untilMs = performance.now() + TIMEOUT_MS;
  const lastId = readStream(received).ids.at(-1);
  let lastAnswer = 'nothing';
  while (performance.now() < untilMs) {
    const headers = { ...headersOf(call), ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
    const rest = await get(`${gateways.nextRouterUrl()}/api/v1/generations/${read.generationId}/stream`, headers).catch(() => null);
    const isWhole = rest !== null && (await inTime(rest.ended));
    if (rest?.status === 404) return;
    if (rest?.status === 200 && isWhole) {
      take(read, received + rest.text);
      read.wasResumed = true;
      if (read.ends.length === 0) read.fault = 'the resumed stream ended in silence';
      return;
    }
    if (rest !== null) lastAnswer = `${rest.status}${isWhole ? '' : ', cut'}: ${rest.text.slice(-END_CHARS)}`;
    await delay(RETRY_MS);
  }
  read.fault = `${read.generationId} could not be resumed, and was not refused either; it was answered ${lastAnswer}`;
}

function take(read: ReadToEnd, received: string): void {
  const { text, ends, behindEnd, cost } = readStream(received);
  Object.assign(read, { text, ends, behindEnd, cost });
}

/** Whether the gateway received a signal, or has ended. */
export function isDying({ ended }: Gateways, url: string): boolean {
  return [...ended].some((one) => one.url === url);
}

export function headersOf({ key, headers }: Pick<StreamedCall, 'key' | 'headers'>): Record<string, string> {
  return { authorization: `Bearer ${key}`, ...headers };
}

/** @throws when a response hangs */
export async function inTime(ended: Promise<boolean>): Promise<boolean> {
  const late = new AbortController();
  const limit = delay(TIMEOUT_MS, null, { signal: late.signal }).catch(() => null);
  const outcome = await Promise.race([ended, limit]);
  late.abort();
  if (outcome === null) throw new Error(`a response was silent for ${TIMEOUT_MS} ms and longer`);
  return outcome;
}
