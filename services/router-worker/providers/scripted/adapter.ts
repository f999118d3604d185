import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ProviderPart, ReasoningBlock } from '#shared/contracts/router/provider-part.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { randomHex } from '#shared/ids.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { ProviderAdapter, ProviderCall } from '../provider.ts';
import { compose, type Script } from './compose.ts';
import type { Directives } from './directives.ts';
import { embed } from './embed.ts';
import type { RepeatedWords } from './repeated-words.ts';

export interface ScriptedOptions {
  slug: string;
  name: string;
  /** Of streamed answers; 0 is unpaced. */
  wordsPerSecond: number;
}

/** Words per pause are batched: twenty batches a second look like sixty, at a third of the timers and frames. */
const BATCH_MS = 50;

/** Parts per batch and the pause between batches; 0 ms: one tick. */
interface BatchTiming {
  batchParts: number;
  pauseMs: number;
}

const UNPACED: BatchTiming = { batchParts: 1, pauseMs: 0 };

const CALL_ID_BYTES = 12;

/** It has one tier, whatever the request asks for. */
const SERVED_TIER: ProviderPart = { type: 'response-metadata', id: null, systemFingerprint: null, serviceTier: 'default' };

/** Of reasoning in the summary that a request asks for. */
const SUMMARY: ReasoningBlock = { index: 0, id: null, format: 'unknown' };

type Failure = NonNullable<Directives['fail']>;

/** A deterministic provider without model or network, for trials and tests. Only tool call ids are random. */
export function scripted({ slug, name, wordsPerSecond }: ScriptedOptions): ProviderAdapter {
  return {
    slug,
    async stream(call, signal, onParts) {
      signal.throwIfAborted();
      const timing = call.isStreamed === true ? timingOf(wordsPerSecond) : UNPACED;
      for await (const parts of play(name, call, timing, signal)) if (!onParts(parts)) return;
    },
    async embed(call, signal) {
      await pause(0, signal);
      return embed(call);
    },
    upstreamBody: ({ model, request }) => ({ ...request, model }),
  };
}

function timingOf(wordsPerSecond: number): BatchTiming {
  if (wordsPerSecond === 0) return UNPACED;
  const batchParts = Math.max(1, Math.round((wordsPerSecond * BATCH_MS) / 1_000));
  return { batchParts, pauseMs: (batchParts / wordsPerSecond) * 1_000 };
}

async function* play(name: string, call: ProviderCall, timing: BatchTiming, signal: CallSignal): AsyncGenerator<readonly ProviderPart[], void, void> {
  const script = compose(call.request);
  const { fail } = script.directives;
  const failure = fail !== null && (fail.onModel === null || fail.onModel === call.model) ? fail : null;
  if (call.request.service_tier) yield [SERVED_TIER];
  if (failure !== null) return yield* playFailure({ name, call, script, failure, timing, signal });
  yield* emit(script, script.words, timing, signal);
  yield [{ type: 'finish', reason: script.finish, nativeReason: script.finish }];
  yield [{ type: 'usage', usage: script.usage }];
}

/** Reasoning, text and tool calls. Each batch has its own tick, like a network read; `!slow` overrides the timing. */
async function* emit(
  { reasoning, isSummary, toolCalls, directives }: Script,
  words: RepeatedWords,
  timing: BatchTiming,
  signal: CallSignal,
): AsyncGenerator<readonly ProviderPart[], void, void> {
  const partsFrom = (from: number, to: number): ProviderPart[] => [
    ...reasoning
      .slice(from, to)
      .map((text): ProviderPart => (isSummary ? { type: 'reasoning-summary-delta', text, block: SUMMARY } : { type: 'reasoning-delta', text })),
    ...words.slice(from - reasoning.length, to - reasoning.length).map((text) => ({ type: 'text-delta' as const, text })),
  ];
  const { batchParts, pauseMs } = directives.slowMs > 0 ? { batchParts: 1, pauseMs: directives.slowMs } : timing;
  for (let from = 0; from < reasoning.length + words.length; from += batchParts) {
    await pause(pauseMs, signal);
    yield partsFrom(from, from + batchParts);
  }
  for (const [index, { name, arguments: text }] of toolCalls.entries()) {
    await pause(directives.slowMs, signal);
    yield [{ type: 'tool-call-start', index, id: `call_${randomHex(CALL_ID_BYTES)}`, name }];
    // In two pieces, as models send them.
    const middle = Math.ceil(text.length / 2);
    for (const piece of [text.slice(0, middle), text.slice(middle)]) if (piece !== '') yield [{ type: 'tool-call-delta', index, arguments: piece }];
  }
}

interface FailureRun {
  name: string;
  call: ProviderCall;
  script: Script;
  failure: Failure;
  timing: BatchTiming;
  signal: CallSignal;
}

/** Fails as `!fail` asks, with the errors of a real upstream. */
async function* playFailure({ name, call, script, failure, timing, signal }: FailureRun): AsyncGenerator<readonly ProviderPart[], void, void> {
  const { kind, afterWords, retryAfterMs } = failure;
  const raw = { message: `requested by !fail ${kind}` };
  const retryAfter = retryAfterMs === null ? {} : { retryAfterMs };
  const firstWords = () => emit(script, script.words.first(afterWords), timing, signal);
  switch (kind) {
    case 'connect':
      throw new SwitchyardError('router.provider_unavailable', `${name} can't be reached (ECONNREFUSED)`, { details: { reason: 'ECONNREFUSED' } });
    case '429':
      throw new SwitchyardError('router.provider_rate_limited', `${name}: too many requests`, { details: { status: 429, raw, ...retryAfter } });
    case '500':
      throw new SwitchyardError('router.provider_unavailable', `${name}: it answered 500`, { details: { status: 500, raw } });
    case '529':
      throw new SwitchyardError('router.provider_overloaded', `${name}: it is overloaded`, { details: { status: 529, raw, ...retryAfter } });
    case 'timeout':
      await stall(name, call.timeouts.firstTokenMs, signal);
      return;
    case 'stall':
      yield* firstWords();
      await stall(name, afterWords > 0 ? call.timeouts.idleMs : call.timeouts.firstTokenMs, signal);
      return;
    case 'error-event':
      yield* firstWords();
      throw new SwitchyardError('router.provider_unavailable', `${name}: it sent an error`, { details: { status: 500, raw } });
    case 'malformed':
      yield* firstWords();
      throw new SwitchyardError('router.provider_unavailable', `${name} sent an answer that can't be read`);
    case 'cut':
      yield* firstWords();
      throw cut(name);
    case 'empty':
      throw cut(name);
    case 'refuse':
      yield [{ type: 'refusal-delta', text: "I'm sorry, I can't help with that." }];
      yield [{ type: 'finish', reason: 'content_filter', nativeReason: 'refusal' }];
  }
}

function cut(name: string): SwitchyardError {
  return new SwitchyardError('router.provider_unavailable', `${name} closed the stream before it had finished`);
}

async function stall(name: string, limitMs: number, signal: CallSignal): Promise<never> {
  await pause(limitMs, signal);
  throw new SwitchyardError('router.provider_unavailable', `${name} was silent for ${limitMs} ms`, { details: { reason: 'timeout' } });
}

/** @throws the signal's reason, at once on abort */
async function pause(ms: number, signal: CallSignal): Promise<void> {
  if (ms > 0) await after(ms, signal);
  else await nextTurn();
  signal.throwIfAborted();
}

function after(ms: number, signal: CallSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, signal.aborted ? 0 : ms);
    signal.addEventListener('abort', end);
  });
}
