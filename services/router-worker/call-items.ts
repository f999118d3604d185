import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { callJson } from '#bus/messages/deferred-call.ts';
import { isClientCall, ROUTER_CALL_VERSION, type RouterCall, routerCall } from '#bus/messages/router.ts';
import { pauseFor } from '#bus/pause.ts';
import { callLease } from '#bus/renew-lease.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { InvalidItem, type ItemKind, type Outcome, type Refusal, type ResultCommand } from '#services/work/item-kind.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import type { Reservations } from '#shared/credit/reservations.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import type { KeyDirectory } from '#shared/keys/caller-key.ts';
import { hashInReference } from '#shared/keys/key-reference.ts';
import { type DeferredMessages, deferMessages } from '#shared/prompts/deferred-messages.ts';
import type { RatedCall } from '#shared/rates/rate-limits.ts';
import type { TokenCorrections } from '#shared/rates/token-corrections.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';
import { actorIds } from '#shared/telemetry/actor-ids.ts';
import { type Log, logAbout } from '#shared/telemetry/log.ts';
import { traceIdIn } from '#shared/telemetry/trace-context.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import type { Attempted } from './call/attempt.ts';
import { checkTexts } from './call/check-texts.ts';
import { type ExecuteDeps, executeCall, refuseCall } from './call/execute-call.ts';
import type { CallResult, Execution } from './call/execution.ts';
import { type CallRefusal, callUnderKey } from './call-credit.ts';
import { callEndReasons, refusalError, workerDied } from './call-ends.ts';
import { keyOfRefused } from './call-key.ts';
import { isCheck, isEvaluation } from './call-kind.ts';
import { callLine } from './call-line.ts';
import { countCall } from './call-metrics.ts';
import type { CallRates } from './call-rates.ts';
import { CallRecord } from './call-record.ts';
import { enterSetup, setupOf } from './call-setup.ts';
import { CallSpan, callTrace } from './call-span.ts';
import type { CallWatch } from './call-watch.ts';
import type { InterimRecords } from './interim/interim-records.ts';
import type { PlatformCalls } from './platform/platform-calls.ts';
import { type Published, publishedOf } from './published-frames.ts';
import type { RouterSetup } from './router-setup.ts';
import type { Setups } from './setups.ts';

/** Of calls that name none. */
const FIRST_SURFACE = 'chat-completions';
/** In logs: the key is known to the platform alone. */
const PLATFORM_KEY = 'platform';
/** How long a bus holds frames while its connection is away. */
const FRAMES_HELD_MS = 3_000;
const NOTHING: Published = { kind: 'nothing' };

/** What is the same for all calls of this worker. */
export interface CallItemsDeps extends Omit<ExecuteDeps, keyof RouterSetup> {
  setups: Setups;
  /** For calls of agents whose platform is another deployment; null or absent: there are none. */
  platformCalls?: PlatformCalls | null;
  bus: Bus;
  /** Null: there is no cache. */
  tokenCorrections: TokenCorrections | null;
  interims: InterimRecords;
  /** Of actors' calls, whose keys may have a limit. */
  reservations: Reservations;
  /** Likewise. */
  rates: CallRates;
  clock: Clock;
  /** For deadlines of actors' calls. */
  actorClock: Clock;
  log: Log;
  keys: KeyDirectory;
  watch: CallWatch;
  tracing: Tracing;
}

/** With what the call's configuration adds. */
type CallDeps = CallItemsDeps & RouterSetup;

/** Limits of one kind of call at this worker. */
interface KindLimits {
  concurrency: number;
  bodyBytes: number;
}

interface AddressedCall {
  call: RouterCall;
  surface: Surface;
  framesAt: string;
}

/** Router calls: of clients (`router.call`, dispatched and queued) and of actors (`router.turn`). */
export function callItems(name: 'router.call' | 'router.turn', limits: KindLimits, deps: CallItemsDeps): ItemKind<AddressedCall, CallResult> {
  const { clock, actorClock, tracing, watch } = deps;
  const under = underSetup(deps);
  return {
    name,
    ...limits,
    lease: callLease,
    newestVersion: ROUTER_CALL_VERSION,
    needsEffectRow: true,
    deadLetters: 'call',
    writesOwnLine: true,
    // The record of what was used.
    storesCancelled: true,
    endReasons: callEndReasons,
    json: callJson,
    parse: callIn,
    header: ({ call: { callId: id, reply, republished, traceparent } }) => ({ id, sessionId: reply?.sessionId ?? null, republished, traceparent }),
    ids: ({ call }) => idsOf(call),
    remainingMs: ({ call }) => call.deadlineAtMs - (call.reply === null ? clock : actorClock).nowMs(),
    watch: ({ call }, running, publishedAtMs) => watch.follow(call, running, publishedAtMs),
    trace: { of: ({ call }, { delivery }) => callTrace(call, { delivery, nowMs: actorClock.nowMs() }, tracing.content) },
    execute: (addressed, running) => settleUnderSetup(addressed, running, under, deps),
    refuse: (addressed, refusal, running) => settleUnderKey(addressed, running, refusal, under(enterSetup(addressed.call, running, deps).setup)),
    commandOf: ({ call }, result) => (call.reply === null ? null : commandOf(call.reply.actorId, result)),
    whenTooLarge: (failure) => ({ type: 'failed', failure }),
  };
}

/** Once per configuration: merged for each call, they took a tenth of its CPU. */
function underSetup(deps: CallItemsDeps): (setup: RouterSetup) => CallDeps {
  const merged = new WeakMap<RouterSetup, CallDeps>();
  return (setup) => {
    const known = merged.get(setup);
    if (known !== undefined) return known;
    const all = { ...deps, ...setup };
    merged.set(setup, all);
    return all;
  };
}

function settleUnderSetup(
  addressed: AddressedCall,
  running: RunningItem,
  under: (setup: RouterSetup) => CallDeps,
  deps: CallItemsDeps,
): Promise<Outcome<CallResult>> {
  const settle = (setup: RouterSetup) => settleUnderKey(addressed, running, null, under(setup));
  const setup = setupOf(addressed.call, running, deps);
  // no fail point: waits
  return setup instanceof Promise ? setup.then((found) => (found === 'again' ? found : settle(found))) : settle(setup);
}

/** A call that no gateway has admitted names its key by a hash. Those of actors of releases before name `llms.api_key`, and are not checked. */
function settleUnderKey(addressed: AddressedCall, running: RunningItem, refusal: Refusal | null, deps: CallDeps): Promise<Outcome<CallResult>> {
  const { call } = addressed;
  const hash = hashInReference(call.keyId);
  if (hash === null) return settleCall(addressed, running, refusal, deps);
  const { platformCalls: elsewhere } = deps;
  if (elsewhere?.has(hash)) return settleCall(named(addressed, PLATFORM_KEY), running, refusal, { ...deps, elsewhere });
  const { keys, reservations, rates, clock, defaultCompletionTokens, catalogue, enginePrices } = deps;
  const log = logAbout(deps.log, () => idsOf(call));
  const keyDeps = { keys, reservations, rates, clock, defaultCompletionTokens, catalogue, enginePrices, log };
  // no fail point: reads
  if (refusal !== null) return keyOfRefused(hash, keyDeps).then(({ keyId }) => settleCall(named(addressed, keyId), running, refusal, deps));
  const settle = ({ call: under, refusal: keyRefusal, rated }: Awaited<ReturnType<typeof callUnderKey>>) => {
    // A worker that has lost the lease frees no slot: it may be that of the next delivery.
    if (rated !== null) running.onRelease(() => (running.isLeaseLost ? rated.leave() : rated.end()));
    return settleCall({ ...addressed, call: under }, running, keyRefusal, deps, rated);
  };
  // no fail point, because what it reserves and counts under the call's id is found again by the next delivery, or lapses
  return callUnderKey(call, hash, running, keyDeps).then(settle);
}

function named(addressed: AddressedCall, keyId: string | null): AddressedCall {
  return { ...addressed, call: { ...addressed.call, keyId: keyId ?? addressed.call.keyId } };
}

/**
 * Frames, then log line and result. For a redelivered client's call the stored frames decide whether it is executed: null when its terminal frame is
 * among them.
 */
async function settleCall(
  addressed: AddressedCall,
  running: RunningItem,
  refusal: CallRefusal | null,
  deps: CallDeps,
  rated: RatedCall | null = null,
): Promise<Outcome<CallResult>> {
  const { call, surface, framesAt } = addressed;
  const { bus, metrics } = deps;
  const startedAtMs = performance.now();
  const mayHaveFrames = running.delivery > 1 && call.reply === null;
  // no fail point: reads
  const published = mayHaveFrames ? await publishedOf(bus.tokens, addressed, { isLastDelivery: refusal?.why === 'given-up' }) : NOTHING;
  const attempts: Attempted[] = [];
  const record = new CallRecord({ call, attempts, running, rated, isBilledElsewhere: deps.elsewhere !== undefined }, deps);
  // no fail point: reads
  const interim = mayHaveFrames ? await deps.interims.find(call.callId) : null;
  if (published.kind === 'end') {
    await record.storeEnded(published.shown, interim); // no fail point: inside
    return null;
  }
  // Its frames may be lost, with the broker that retained them.
  const lost = record.lost(published.kind === 'content' ? published.shown : null, interim);
  const error = lost !== null ? workerDied() : refusal === null ? null : refusalError(refusal);
  const span = running.span === null ? null : new CallSpan(running.span, call.want === 'frames', deps);
  if (call.want === 'frames' && call.reply === null && error === null && deps.elsewhere === undefined) {
    running.onRelease(deps.interims.follow(call.callId, () => record.interim()));
  }
  const execution: Execution = {
    call,
    surface,
    attempt: running.attempt,
    signal: running.ended,
    mayPublish: () => running.cause !== 'lease-lost',
    tokens: bus.tokens,
    framesAt,
    nowMs: deps.clock.nowMs(),
    log: logAbout(deps.log, () => idsOf(call)),
    decided: (choice) => {
      record.choice = choice;
    },
    added: (added) => {
      record.added = added;
    },
    answering: (candidate, answer) => record.answering(candidate, answer),
    attempted: (attempt) => {
      attempts.push(attempt);
      span?.attempted(attempt);
    },
    // A check has used nothing that is billed.
    ending: isCheck(call) ? undefined : (ending) => record.store(ending),
    capturesContent: deps.tracing.content !== 'off',
    failures: deps.failures,
  };
  const executing = error === null ? (isCheck(call) ? checkTexts : executeCall)(execution, deps) : refuseCall(execution, error, lost);
  let result: CallResult;
  try {
    result = await executing; // no fail point: inside
  } catch (thrown) {
    if (running.isLeaseLost || failureOf(thrown).code !== 'service.not_ready') throw thrown;
    // The record is not stored, so nothing has ended: the redelivery bills what readers have.
    record.leaveCorrection();
    return 'again';
  }
  // The terminal frame was published just now: while disconnected it is held, or lost.
  const isReachable = bus.isReady();
  const { cause } = running;
  /** As metrics name it. */
  const label = cause === 'lease-lost' ? 'abandoned' : cause;
  countCall({ call, result, label, attempts, servedBy: record.servedBy, bill: record.bill }, deps.catalogue, metrics);
  // Another worker may publish and report by now.
  if (cause === 'lease-lost') throw running.ended.reason;
  running.span?.end(result.type === 'completed' ? null : result.failure.code);
  if (call.reply === null && !isReachable && cause === null) {
    // The redelivery reads the stored frames and ends the call: not before those that are held can be there.
    await pauseFor(FRAMES_HELD_MS, running.leaseLost); // no fail point: waits
    record.leaveCorrection();
    return 'again';
  }
  await record.stored; // no fail point: inside
  const level = isEvaluation(call) ? 'debug' : 'info';
  if (deps.log.writes?.(level) !== false) {
    const line = callLine({
      call,
      result,
      attempts,
      decision: record.choice?.decision ?? null,
      bill: record.bill,
      cause,
      durationMs: performance.now() - startedAtMs,
    });
    deps.log[level](Object.assign({}, line, { delivery: running.delivery }, idsOf(call)), 'a router call has ended');
  }
  return result;
}

function idsOf({ callId, keyId, traceparent, reply }: RouterCall) {
  const traceId = traceIdIn(traceparent);
  if (reply === null) return { call_id: callId, key_id: keyId, trace_id: traceId };
  return { call_id: callId, key_id: keyId, trace_id: traceId, session_id: reply.sessionId, ...actorIds(reply.actorId) };
}

function commandOf(actorId: string, result: CallResult): ResultCommand {
  if (result.type === 'failed') return { type: 'call.failed', failure: result.failure, ...actorFields(actorId) };
  const { text, toolCalls, model, provider, finishReason, usage, vectors } = result;
  const ofVectors = vectors === undefined ? {} : { vectors: vectors.flatMap(base64In) };
  return { type: 'call.completed', text, toolCalls, model, provider, finishReason, usage, ...ofVectors, ...actorFields(actorId) };
}

/** Actors ask for base64, which is a string as JSON. */
function base64In(vector: string): string[] {
  const value: unknown = JSON.parse(vector);
  return typeof value === 'string' ? [value] : [];
}

/** @param messages null: they are in the body @returns null when its surface is unknown */
function callIn(body: unknown, messages: DeferredMessages | null): AddressedCall | InvalidItem | null {
  if (isClientCall(body)) {
    if (messages !== null) deferMessages(body.request, messages);
    return addressed(body);
  }
  // The schema copies what it reads, so it gets all of it.
  const parsed = routerCall.safeParse(messages === null ? body : withMessages(body, messages));
  return parsed.success ? addressed(parsed.data) : new InvalidItem(`not a router call: ${z.prettifyError(parsed.error)}`);
}

function withMessages(body: unknown, messages: DeferredMessages): unknown {
  return typeof body === 'object' && body !== null && 'request' in body
    ? { ...body, request: Object.assign({}, body.request, { messages: messages.read() }) }
    : body;
}

function isOfVectors({ request }: Surface): boolean {
  return request?.toEmbeddingCall !== undefined;
}

/** A call without a valid subject for its frames would fail in each worker, for ever. */
function addressed(call: RouterCall): AddressedCall | InvalidItem | null {
  const surface = surfaces.get(call.surface ?? FIRST_SURFACE);
  if (surface === undefined) return null;
  if (isCheck(call) && (call.reply === null || call.want !== 'none'))
    return new InvalidItem('not a router call: a check of texts is of an actor, without frames');
  if (isOfVectors(surface) !== (call.embedding !== undefined)) return new InvalidItem('not a router call: it does not fit its surface');
  try {
    return { call, surface, framesAt: subjectOf(addresses.tokens, call.origin, call.callId) };
  } catch {
    return new InvalidItem('not a router call: its frames have no address');
  }
}
