import { z } from 'zod';
import { readStream } from '../helpers/read-stream.ts';
import type { Cluster } from '../helpers/start-cluster.ts';

/** Requests that are in flight when a store goes away, and still open when it returns. */
export interface HeldOpen {
  /** How each ended, with the time that it took. */
  answers(): Promise<{ asked: string; outcome: string; tookMs: number }[]>;
  /** Closes the session's stream. @returns the offsets that it received, and how often it was reopened */
  leave(): Promise<{ offsets: number[]; reopened: number }>;
}

/** The scripted model takes some ten seconds for this answer: a pause before each word. */
const SLOW = '!slow 250 Hello!';
const TIMEOUT_MS = 90_000;
/** A client of an event stream reopens it after this delay, as browsers do. */
const REOPEN_MS = 500;

const eventData = z.looseObject({ offset: z.number() });

/** Opens a slow call and a slow stream at the router, and a reader of a session. */
export async function holdOpen(cluster: Cluster, sessionId: string): Promise<HeldOpen> {
  const router = (stream: boolean) => slowCall(cluster, stream);
  const calls = [router(false), router(true)];
  const reader = followSession(cluster, sessionId);
  await Promise.all([reader.isOpen, ...calls.map(({ isSent }) => isSent)]);
  return { answers: () => Promise.all(calls.map(({ answer }) => answer)), leave: reader.leave };
}

function slowCall(cluster: Cluster, stream: boolean) {
  const [url = ''] = cluster.routerUrls;
  const begunAtMs = performance.now();
  const asked = stream ? 'router stream on its way' : 'router call on its way';
  const response = fetch(`${url}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${cluster.keys.routerKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ stream, messages: [{ role: 'user', content: SLOW }] }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const read = async () => {
    const answered = await response;
    const text = await answered.text();
    return `${answered.status}${wordsOf(answered.status, text)}`;
  };
  const answer = read()
    .catch((error: unknown) => (error instanceof DOMException ? 'no answer' : 'cut'))
    .then((outcome) => ({ asked, outcome, tookMs: Math.round(performance.now() - begunAtMs) }));
  // A stream sends its head at once; a call sends nothing before its end.
  return { answer, isSent: stream ? response : Promise.resolve() };
}

const refusal = z.looseObject({ error: z.looseObject({ type: z.string() }) });

function wordsOf(status: number, text: string): string {
  if (status !== 200) return ` ${refusal.parse(JSON.parse(text)).error.type}`;
  if (text.startsWith('{')) return '';
  const { ends, behindEnd } = readStream(text);
  if (ends.length !== 1 || behindEnd > 0) return ` then ${ends.join(' and ') || 'silence'}`;
  return ends[0] === 'done' ? ' then done' : ` then error ${ends[0]}`;
}

/** Reads a session by SSE and, as every client does, reopens a broken stream at its last event. */
function followSession(cluster: Cluster, sessionId: string) {
  const offsets: number[] = [];
  const leaving = new AbortController();
  let reopened = -1;
  let resolveOpen = () => {};
  const isOpen = new Promise<void>((resolve) => {
    resolveOpen = resolve;
  });
  const once = async () => {
    const urls = cluster.agentUrls;
    const headers: Record<string, string> = { authorization: `Bearer ${cluster.keys.agentKey}`, accept: 'text/event-stream' };
    const last = offsets.at(-1);
    if (last !== undefined) headers['last-event-id'] = String(last);
    const response = await fetch(`${urls[(reopened + 1) % urls.length]}/sessions/${sessionId}/events`, { headers, signal: leaving.signal });
    if (response.status !== 200 || response.body === null) return;
    reopened += 1;
    resolveOpen();
    let text = '';
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      const blocks = (text + piece).split('\n\n');
      text = blocks.pop() ?? '';
      offsets.push(...blocks.flatMap(offsetIn));
    }
  };
  const reading = (async () => {
    while (!leaving.signal.aborted) {
      await once().catch(() => {});
      if (!leaving.signal.aborted) await new Promise((resolve) => setTimeout(resolve, REOPEN_MS));
    }
  })();
  return {
    isOpen,
    leave: async () => {
      leaving.abort();
      await reading;
      return { offsets, reopened };
    },
  };
}

/** Offsets of conversation events; a block without an id is not one. */
function offsetIn(block: string): number[] {
  const lines = block.split('\n');
  if (!lines.some((line) => line.startsWith('id: '))) return [];
  const data = lines.find((line) => line.startsWith('data: '))?.slice('data: '.length);
  return data === undefined ? [] : [eventData.parse(JSON.parse(data)).offset];
}
