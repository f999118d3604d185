import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { type Failure, failureOf } from '#shared/errors/switchyard-error.ts';
import type { ProviderAdapter, ProviderCall, ProviderPart } from '../provider.ts';

/** What an upstream does with its next request, whatever its dialect. Absent fields stand for an upstream that is well. */
export interface UpstreamScenario {
  /** The answer, piece by piece. */
  text?: readonly string[];
  reasoning?: readonly string[];
  toolCalls?: readonly { id: string; name: string; arguments: readonly string[] }[];
  finish?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** Where the usage is told. Before the end of the answer when absent. */
  usage?: 'before-end' | 'after-end' | 'never';
  /** Answers with an error of this status and no answer. */
  refuse?: { status: number; code?: string; message?: string; headers?: Record<string, string>; param?: string };
  /** Goes wrong once `after` pieces of text were sent; with `silent` and `hang-up` not even headers are. */
  fault?: 'silent' | 'hang-up' | 'stall' | 'cut' | 'ends-early' | 'malformed' | 'error-event' | 'endless-line';
  after?: number;
  /** Of an `error-event`: as a number, or as a text with digits, or a word. */
  errorCode?: number | string;
  isFinishedTwice?: boolean;
  hasNoEndMarker?: boolean;
  /** Leaves the connection open after the end mark. */
  staysOpen?: boolean;
  newline?: '\n' | '\r\n';
  /** Bytes of each write. */
  pieceBytes?: number;
  /** Pause before each piece of text. */
  delayMs?: number;
  /** Answers as one JSON body although it was asked to stream. */
  isWhole?: boolean;
}

/** A real server on loopback that speaks a dialect and does as it is told. */
export interface LoopbackUpstream {
  baseUrl: string;
  /** For the next requests, one each; the last one stays. */
  answer(...scenarios: UpstreamScenario[]): void;
  readonly requests: readonly { body: unknown; headers: Readonly<Record<string, string | string[] | undefined>> }[];
  readonly connections: number;
  /** Requests whose client closed the connection before the answer was complete. */
  readonly aborts: number;
  close(): Promise<void>;
}

/** What the suite needs to know of a dialect. */
export interface ConformanceTarget {
  openUpstream(): Promise<LoopbackUpstream>;
  /** @param baseUrl nobody listens there when the suite tries a dead upstream */
  openAdapter(options: { baseUrl: string; apiKey: string }): ProviderAdapter & { close(): Promise<void> };
}

export const API_KEY = 'sk-loopback-0123456789';
/** For answers that take their time on a busy machine. */
export const GENEROUS_TIMEOUTS = { connectMs: 1_000, firstTokenMs: 20_000, idleMs: 20_000 };
/** For upstreams that fall silent: short, because the suite waits for it. */
export const HASTY = { connectMs: 1_000, firstTokenMs: 300, idleMs: 300 };
/** For upstreams that fall silent in the middle. */
export const IMPATIENT = { connectMs: 1_000, firstTokenMs: 20_000, idleMs: 300 };
/** For what the system does in its own time; a machine may be busy. */
export const WAIT = { timeout: 30_000 };
export const NEVER_ABORTED = new AbortController().signal;

/** An adapter and the server that it talks to, opened for one case. */
export interface AdapterUnderTest {
  adapter: ProviderAdapter;
  upstream: LoopbackUpstream;
  /** Makes one call while the upstream does as the scenario says. */
  run(scenario: UpstreamScenario, timeouts?: ProviderCall['timeouts'], signal?: AbortSignal): Promise<ReceivedParts>;
}

/** A whole answer; what was thrown stands beside what came before it. */
interface ReceivedParts {
  batches: (readonly ProviderPart[])[];
  parts: ProviderPart[];
  text: string;
  /** Null when the answer ended well. */
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
    await adapter.stream(call, signal, (parts) => batches.push(parts) > 0);
  } catch (error) {
    thrown = error;
  }
  const parts = batches.flat();
  const text = parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');
  return { batches, parts, text, failure: thrown === null ? null : failureOf(thrown), thrown };
}
