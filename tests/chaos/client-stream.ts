import { setTimeout as delay } from 'node:timers/promises';
import { get, post } from '../../services/router-gateway/test-support/http-client.ts';
import { readStream, receivedOf } from '../helpers/read-stream.ts';
import { plannedCall, requestFor } from '../helpers/scripted-deployment.ts';
import { type Environment, TIMEOUT_MS } from './environment.ts';

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
  /** Why the end of the connection is a fault; null when it is allowed. */
  fault: string | null;
}

const WORDS = 30;
const EVERY_MS = 40;
const RETRY_MS = 200;
/** Statuses that ask a client to retry, or that say that no frame exists yet. */
const RETRIABLE = new Set([408, 429, 502, 503, 504]);

/** Streams one answer, and resumes at another gateway when its own has ended. */
export async function readToEnd(environment: Environment): Promise<ReadToEnd> {
  const plan = plannedCall({ first: [{ say: 'word', times: WORDS, everyMs: EVERY_MS }, 'finish', 'usage', 'done', 'end'] });
  const whole = Array.from({ length: WORDS }, (_, index) => `word${index} `).join('');
  const read: ReadToEnd = { call: plan.name, whole, text: '', ends: [], behindEnd: 0, wasCut: false, wasResumed: false, refusedWith: null, fault: null };
  const gateway = environment.nextRouterUrl();
  const { answer } = post(`${gateway}/api/v1/chat/completions`, requestFor(plan, 'first', true), authorization(environment));
  const first = await answer.catch(() => null);
  if (first === null) {
    read.wasCut = true;
    read.fault = isDying(environment, gateway) ? null : 'a running gateway closed the connection without an answer';
    return read;
  }
  const isWhole = await inTime(first.ended);
  if (first.status !== 200) {
    read.refusedWith = first.status;
    read.fault = RETRIABLE.has(first.status) ? null : `it was answered ${first.status}: ${first.text}`;
    return read;
  }
  const received = receivedOf(first.text);
  take(read, received);
  if (read.ends.length > 0) return read;
  read.wasCut = true;
  if (isWhole || !isDying(environment, gateway)) {
    read.fault = `the stream ended in silence (${isWhole ? 'in order' : 'broken'}) after ${JSON.stringify(received.slice(-200))}`;
    return read;
  }
  await resume(environment, read, { callId: String(first.headers['x-generation-id']), received });
  return read;
}

/** Resumes where the first connection was cut, as a client does. A call whose first frames are no longer stored must be refused as such. */
async function resume(environment: Environment, read: ReadToEnd, { callId, received }: { callId: string; received: string }): Promise<void> {
  const untilMs = performance.now() + TIMEOUT_MS;
  const lastId = readStream(received).ids.at(-1);
  while (performance.now() < untilMs) {
    const headers = { ...authorization(environment), ...(lastId === undefined ? {} : { 'last-event-id': lastId }) };
    const rest = await get(`${environment.nextRouterUrl()}/api/v1/generations/${callId}/stream`, headers).catch(() => null);
    const isWhole = rest !== null && (await inTime(rest.ended));
    if (rest?.status === 404) return;
    if (rest?.status === 200 && isWhole) {
      take(read, received + rest.text);
      read.wasResumed = true;
      if (read.ends.length === 0) read.fault = 'the resumed stream ended in silence';
      return;
    }
    await delay(RETRY_MS);
  }
  read.fault = `${callId} could not be resumed, and was not refused either`;
}

function take(read: ReadToEnd, received: string): void {
  const { text, ends, behindEnd } = readStream(received);
  Object.assign(read, { text, ends, behindEnd });
}

/** Whether the gateway received a signal, or has ended. */
function isDying({ ended }: Environment, url: string): boolean {
  return [...ended].some((one) => one.url === url);
}

function authorization({ cluster }: Environment): Record<string, string> {
  return { authorization: `Bearer ${cluster.keys.routerKey}` };
}

/** @throws when a stream hangs */
async function inTime(ended: Promise<boolean>): Promise<boolean> {
  const late = new AbortController();
  const limit = delay(TIMEOUT_MS, null, { signal: late.signal }).catch(() => null);
  const outcome = await Promise.race([ended, limit]);
  late.abort();
  if (outcome === null) throw new Error(`a stream was silent for ${TIMEOUT_MS} ms and longer`);
  return outcome;
}
