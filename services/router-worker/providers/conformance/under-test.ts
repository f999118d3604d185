import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { type Failure, failureOf } from '#shared/errors/switchyard-error.ts';
import type { ProviderAdapter, ProviderCall } from '../provider.ts';

/** What an upstream does with its next request, in any dialect. Absent fields mean a healthy upstream. */
export interface UpstreamScenario {
  /** The answer in pieces. */
  text?: readonly string[];
  reasoning?: readonly string[];
  toolCalls?: readonly { id: string; name: string; arguments: readonly string[] }[];
  finish?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** When the usage is sent; absent: before the end. */
  usage?: 'before-end' | 'after-end' | 'never';
  /** An error status instead of an answer. */
  refuse?: { status: number; code?: string; message?: string; headers?: Record<string, string>; param?: string };
  /** Fails after `after` pieces of text; `silent` and `hang-up` don't even send headers, `garbage` is a 200 in no dialect. */
  fault?: 'silent' | 'hang-up' | 'garbage' | 'stall' | 'cut' | 'ends-early' | 'malformed' | 'error-event' | 'endless-line';
  after?: number;
  /** Of an `error-event`: a number, digits as text, or a word. */
  errorCode?: number | string;
  isFinishedTwice?: boolean;
  hasNoEndMarker?: boolean;
  /** Keeps the connection open after the end mark. */
  staysOpen?: boolean;
  newline?: '\n' | '\r\n';
  /** Per write. */
  pieceBytes?: number;
  /** Between the request and the response's headers. */
  headersAfterMs?: number;
  /** Before each piece of text. */
  delayMs?: number;
  /** Answers a stream request with one JSON body. */
  isWhole?: boolean;
}

/** A loopback HTTP server of one dialect that plays scenarios. */
export interface LoopbackUpstream {
  baseUrl: string;
  /** One per request; the last one repeats. */
  answer(...scenarios: UpstreamScenario[]): void;
  readonly requests: readonly { body: unknown; headers: Readonly<Record<string, string | string[] | undefined>> }[];
  readonly connections: number;
  /** Requests closed by the client before the answer was complete. */
  readonly aborts: number;
  close(): Promise<void>;
}

/** What the suite needs of a dialect. */
export interface ConformanceTarget {
  openUpstream(): Promise<LoopbackUpstream>;
  /** @param baseUrl has no listener when the suite tries a dead upstream */
  openAdapter(options: { baseUrl: string; apiKey: string }): ProviderAdapter & { close(): Promise<void> };
}

export const API_KEY = 'sk-loopback-0123456789';
/** For complete answers on a busy machine. */
export const GENEROUS_TIMEOUTS = { connectMs: 1_000, firstTokenMs: 20_000, idleMs: 20_000 };
/** For silence before the first content; short, because the suite waits for it. */
export const HASTY = { connectMs: 1_000, firstTokenMs: 300, idleMs: 300 };
/** For silence after the first content. */
export const IMPATIENT = { connectMs: 1_000, firstTokenMs: 20_000, idleMs: 300 };
/** For polling; a machine may be busy. */
export const WAIT = { timeout: 30_000 };
export const NEVER_ABORTED = new AbortController().signal;

/** An adapter and its upstream, opened for one case. */
export interface AdapterUnderTest {
  adapter: ProviderAdapter;
  upstream: LoopbackUpstream;
  /** Makes one call against the scenario. */
  run(scenario: UpstreamScenario, timeouts?: ProviderCall['timeouts'], signal?: AbortSignal): Promise<ReceivedParts>;
}

/** The parts received, joined, without the upstream's metadata, which may come at any time. */
interface ReceivedParts {
  batches: (readonly ProviderPart[])[];
  parts: ProviderPart[];
  text: string;
  /** Null on success. */
  failure: Failure | null;
  thrown: unknown;
}

export async function openUnderTest(target: ConformanceTarget): Promise<AdapterUnderTest & { close(): Promise<void> }> {
  const upstream = await target.openUpstream();
  const adapter = target.openAdapter({ baseUrl: upstream.baseUrl, apiKey: API_KEY });
  return {
    adapter,
    upstream,
    run(scenario, timeouts = GENEROUS_TIMEOUTS, signal = NEVER_ABORTED) {
      upstream.answer(scenario);
      return onParts(adapter, { ...exampleCall(), timeouts }, signal);
    },
    async close() {
      await adapter.close();
      await upstream.close();
    },
  };
}

export function exampleCall(): ProviderCall {
  const request: ChatRequest = { messages: [{ role: 'user', content: 'hello' }] };
  return { model: 'loopback-model', request, timeouts: GENEROUS_TIMEOUTS };
}

async function onParts(adapter: ProviderAdapter, call: ProviderCall, signal: AbortSignal): Promise<ReceivedParts> {
  const batches: (readonly ProviderPart[])[] = [];
  let thrown: unknown = null;
  try {
    await adapter.stream(call, signal, (parts) => {
      const said = parts.filter(({ type }) => type !== 'response-metadata');
      if (said.length > 0 || parts.length === 0) batches.push(said);
      return true;
    });
  } catch (error) {
    thrown = error;
  }
  const parts = batches.flat();
  const text = parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');
  return { batches, parts, text, failure: thrown === null ? null : failureOf(thrown), thrown };
}
