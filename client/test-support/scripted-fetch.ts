import { createAgentClient } from '../agent-client.ts';
import type { AgentEvent } from '../api.ts';
import type { FollowItem } from '../follow-item.ts';
import type { Timings } from '../timings.ts';

/** A request that the client made, and what its answer is made of. */
export interface SentRequest {
  method: string;
  path: string;
  headers: Headers;
  body: unknown;
  signal: AbortSignal;
}

export type Answer = (sent: SentRequest) => Response | Promise<Response>;

/** Answers in order; the last one answers all further requests. */
export function scripted(...answers: Answer[]) {
  const sent: SentRequest[] = [];
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const { pathname, search } = new URL(String(input));
    const signal = init.signal ?? new AbortController().signal;
    const one = {
      method: init.method ?? 'GET',
      path: pathname + search,
      headers: new Headers(init.headers),
      body: init.body === undefined ? undefined : JSON.parse(String(init.body)),
      signal,
    };
    if (signal.aborted) throw signal.reason;
    sent.push(one);
    const answer = answers[Math.min(sent.length, answers.length) - 1];
    if (answer === undefined) throw new TypeError('fetch failed');
    return answer(one);
  };
  const timings = { retryMs: 1, maxRetryMs: 2, firstByteMs: 5_000, silenceMs: 5_000, requestMs: 5_000 };
  const clientWith = (others: Partial<Timings>) =>
    createAgentClient({ baseUrl: 'http://agent.test/', apiKey: 'a-key', fetch, timings: { ...timings, ...others } });
  return { sent, fetch, client: clientWith({}), clientWith };
}

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return () => Response.json(value, { status, headers });
}

export function lost(): Promise<Response> {
  return Promise.reject(new TypeError('fetch failed'));
}

/** Never comes, but ends with its signal. */
export function hanging({ signal }: SentRequest): Promise<Response> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

/** A stream of these texts; then it is ended, broken off or left open. */
export function stream(texts: readonly string[], end: 'ended' | 'broken' | 'open' = 'open'): Answer {
  return ({ signal }) => {
    const bytes = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        signal.addEventListener('abort', () => controller.error(signal.reason));
        for (const text of texts) controller.enqueue(bytes.encode(text));
        if (end === 'ended') controller.close();
      },
      // After all texts were read: an error discards those that were not.
      pull(controller) {
        if (end === 'broken') controller.error(new TypeError('terminated'));
      },
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };
}

export function message(offset: number, text = `message ${offset}`): AgentEvent {
  return { ...common(offset), kind: 'assistant_message', text };
}

export function status(offset: number, value: 'ready' | 'cancelled' | 'processing'): AgentEvent {
  return { ...common(offset), kind: 'status', status: value, stage: null, error_detail: null };
}

function common(offset: number) {
  return { offset, id: `evt_${offset}`, created_at: '2026-01-01T00:00:00.000Z', source: 'ai_agent', trace_id: 't', metadata: {} } as const;
}

export function sse(event: AgentEvent): string {
  return `id: ${event.offset}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}

export function piece(event: 'delta' | 'snapshot', data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Collects items until `isLast` holds; connection items are left out unless `all`. */
export async function collect(items: AsyncIterable<FollowItem>, isLast: (item: FollowItem) => boolean, all = false): Promise<FollowItem[]> {
  const found: FollowItem[] = [];
  for await (const item of items) {
    if (all || item.type !== 'connection') found.push(item);
    if (isLast(item)) break;
  }
  return found;
}

export function isEventAt(offset: number) {
  return (item: FollowItem) => item.type === 'event' && item.event.offset === offset;
}
