import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { type Failure, failureOf } from '#shared/errors/switchyard-error.ts';
import type { ProviderAdapter, ProviderCall } from '../provider.ts';

/** What an upstream does with its next request, in any dialect. Absent fields mean a healthy upstream. */
export interface UpstreamScenario {
  /** The answer in pieces. */
  text?: readonly string[];
  reasoning?: readonly string[];
  /** Of the reasoning; dialects without signatures send none. */
  signature?: string;
  /** Reasoning that only the upstream can read, likewise. */
  encrypted?: string;
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
  /** `text`: the body as it came. */
  readonly requests: readonly { body: unknown; text: string; headers: Readonly<Record<string, string | string[] | undefined>> }[];
  readonly connections: number;
  /** Requests closed by the client before the answer was complete. */
  readonly aborts: number;
  close(): Promise<void>;
}

/** A request as the vendor reads it. */
export interface UnderstoodRequest {
  /** One per text before the conversation. */
  instructions: string[];
  turns: {
    role: 'user' | 'assistant';
    texts: string[];
    /** Addresses and data URLs. */
    images: string[];
    calls: { id: string; name: string; input: unknown }[];
    results: { id: string; text: string }[];
    /** `text` null: it can't be read. */
    reasoning: { text: string | null; signature: string }[];
  }[];
  /** Of the answer; null: any text. */
  schema: unknown;
  tools: { name: string; schema: unknown }[];
}

/** What the suite needs of a dialect. */
export interface ConformanceTarget {
  /** Reads a recorded body. @throws for one that the vendor would not read */
  understood(body: unknown): UnderstoodRequest;
  /** The model that the suite asks for: one with answers by a schema, and with reasoning that may be sent back. */
  model: string;
  /** What the upstream gets of a picture at an address. */
  pictureAt(url: string): string;
  /** What the upstream gets back of the reasoning "let me see" with the signature `c2lnbmVk` and, where it has such, the encrypted `c2VjcmV0`. */
  returnedReasoning: UnderstoodRequest['turns'][number]['reasoning'];
  /** Whether the upstream counts what it writes to its cache; it writes 4 tokens then. */
  countsCacheWrites: boolean;
  /** Whether the upstream counts the tokens of its reasoning. */
  countsReasoning: boolean;
  openUpstream(): Promise<LoopbackUpstream>;
  /** @param baseUrl has no listener when the suite tries a dead upstream */
  openAdapter(options: { baseUrl: string; apiKey: string }): ProviderAdapter & { close(): Promise<void> };
}

/** Arguments with numbers that parsing and writing would change, inside of lists, too, and beside strings and keys that look like them. */
export const ODD_NUMBERS = '{"id":12345678901234567890,"a\\"b:1.0":[-0,1.0,{"at":[[9007199254740993]]}],"huge":1e400,"text":"1.0, 12345678901234567890\\\\"}';

export const API_KEY = 'sk-loopback-0123456789';
/** For complete answers on a busy machine. */
export const GENEROUS_TIMEOUTS = { connectMs: 60_000, firstTokenMs: 60_000, idleMs: 60_000 };
/** For silence before the first content; short, because the suite waits for it. */
export const HASTY = { connectMs: 1_000, firstTokenMs: 300, idleMs: 300 };
/** For silence after the first content. */
export const IMPATIENT = { connectMs: 60_000, firstTokenMs: 60_000, idleMs: 300 };
/** For polling; a machine may be busy. */
export const WAIT = { timeout: 60_000 };
export const NEVER_ABORTED = new AbortController().signal;

/** An adapter and its upstream, opened for one case. */
export interface AdapterUnderTest {
  adapter: ProviderAdapter;
  upstream: LoopbackUpstream;
  target: ConformanceTarget;
  /** The example call with these fields of the request. */
  callOf(request: Partial<ChatRequest>): ProviderCall;
  /** Makes one call against the scenario. */
  run(scenario: UpstreamScenario, timeouts?: ProviderCall['timeouts'], signal?: AbortSignal): Promise<ReceivedParts>;
  /** Sends a request to a healthy upstream. @returns what the vendor reads of it */
  sent(request: Partial<ChatRequest>): Promise<UnderstoodRequest>;
}

/** The parts received, joined, without those that are about the answer (`isOfAnswer`). */
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
  const callOf = (request: Partial<ChatRequest>): ProviderCall => ({
    model: target.model,
    request: { messages: [{ role: 'user', content: 'hello' }], ...request },
    timeouts: GENEROUS_TIMEOUTS,
  });
  return {
    adapter,
    upstream,
    target,
    callOf,
    run(scenario, timeouts = GENEROUS_TIMEOUTS, signal = NEVER_ABORTED) {
      upstream.answer(scenario);
      return onParts(adapter, { ...callOf({}), timeouts }, signal);
    },
    async sent(request) {
      upstream.answer({});
      const { failure } = await onParts(adapter, callOf(request), NEVER_ABORTED);
      if (failure !== null) throw new Error(`the upstream refused the request: ${failure.message}`);
      return target.understood(upstream.requests.at(-1)?.body);
    },
    async close() {
      await adapter.close();
      await upstream.close();
    },
  };
}

/** Not about it: the upstream's metadata and counts so far, which may come at any time, and what it was not sent. */
export function isOfAnswer({ type }: ProviderPart): boolean {
  return type !== 'response-metadata' && type !== 'usage-so-far' && type !== 'fields-omitted';
}

async function onParts(adapter: ProviderAdapter, call: ProviderCall, signal: AbortSignal): Promise<ReceivedParts> {
  const batches: (readonly ProviderPart[])[] = [];
  let thrown: unknown = null;
  try {
    await adapter.stream(call, signal, (parts) => {
      const said = parts.filter(isOfAnswer);
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
