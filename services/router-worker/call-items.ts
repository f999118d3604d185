import { z } from 'zod';
import type { Bus, Subscription, WorkItem, WorkKind } from '#bus/bus.ts';
import { readFrame } from '#bus/messages/frame.ts';
import { isClientCall, ROUTER_CALL_VERSION, type RouterCall, routerCall } from '#bus/messages/router.ts';
import { versionOf } from '#bus/messages/version-of.ts';
import { partitionOf } from '#bus/partition.ts';
import { callLease, renewLease } from '#bus/renew-lease.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import type { Deadlines } from '#shared/deadlines.ts';
import { isEffectOpen, mayBeDoneAlready } from '#shared/effects/effect-state.ts';
import { storeDeadLetter } from '#shared/effects/store-dead-letter.ts';
import { failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import { jsonIn } from '#shared/json-in.ts';
import type { Database } from '#shared/storage/database.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';
import { actorIds } from '#shared/telemetry/actor-ids.ts';
import { type Log, logAbout } from '#shared/telemetry/log.ts';
import { traceIdIn } from '#shared/telemetry/trace-context.ts';
import type { Tracing } from '#shared/telemetry/tracing.ts';
import { workMarks } from '#shared/telemetry/work-marks.ts';
import { BodyBudget } from '#services/work/item-budget.ts';
import { type CallResult, type ExecuteDeps, type Execution, executeCall, refuseCall } from './call/execute-call.ts';
import { CallAttempts, callLine } from './call-line.ts';
import { abortSignalOf } from './call-signal.ts';
import { callSpan, type Upstreams } from './call-span.ts';
import { reportResult } from './report-result.ts';
import type { RunningCall, RunningCalls } from './call-watch.ts';

/** What crashed five workers would crash the sixth. */
const MAX_DELIVERIES = 5;
/** Of calls that name none. */
const FIRST_SURFACE = 'chat-completions';
const GAVE_UP = `the call was given up after ${MAX_DELIVERIES} tries`;
/** Time to deploy a worker that knows the version. */
const UNKNOWN_VERSION_RETRY_MS = 5_000;
/** After an error of the bus or of this code. */
const FAULT_RETRY_MS = 1_000;
/** Deliveries at which a call without byte budget is nacked, in the hope of another worker: about seven seconds in all. */
const MAX_BUDGET_TRIES = 3;
/** Doubled each time. */
const BUDGET_RETRY_MS = 1_000;

export interface ConsumeDeps extends ExecuteDeps {
  bus: Bus;
  database: Database;
  clock: Clock;
  deadlines: Deadlines;
  log: Log;
  running: RunningCalls;
  tracing: Tracing;
  upstreams: Upstreams;
}

/** Limits of one kind of call at this worker. */
interface KindLimits {
  /** In flight. */
  concurrency: number;
  /** Of requests in flight. */
  bodyBytes: number;
}

/** Consumes router calls of one kind. */
export function consumeCalls(kind: WorkKind, { concurrency, bodyBytes }: KindLimits, deps: ConsumeDeps): Subscription {
  const budget = new BodyBudget(bodyBytes);
  return deps.bus.work.consume(kind, { concurrency, ackWaitMs: callLease.ackWaitMs }, async (item) => {
    workMarks.mark(kind);
    if (item.deliveryCount > 1) deps.metrics.add('redeliveries', { kind });
    const leave = budget.acquire(Buffer.byteLength(item.body));
    try {
      // no fail point: returns
      if (leave === null && item.deliveryCount <= MAX_BUDGET_TRIES) await item.nak(BUDGET_RETRY_MS * 2 ** (item.deliveryCount - 1));
      else await handle(item, leave !== null, deps); // no fail point: inside
    } catch (error) {
      deps.log.error({ err: error, call_id: item.messageId, delivery: item.deliveryCount }, 'a router call could not be handled');
      await item.nak(FAULT_RETRY_MS); // no fail point: returns
    } finally {
      leave?.();
    }
  });
}

interface AddressedCall {
  call: RouterCall;
  surface: Surface;
  framesAt: string;
}

async function handle(item: WorkItem, hasBudget: boolean, deps: ConsumeDeps): Promise<void> {
  const addressedCall = callIn(item);
  if (typeof addressedCall === 'string') return item.term(addressedCall);
  if (addressedCall === null) return item.nak(UNKNOWN_VERSION_RETRY_MS);
  const { call } = addressedCall;
  const starting = deps.running.begin(call, item.publishedAtMs);
  const running = starting instanceof Promise ? await starting : starting;
  failPoint('call.taken');
  const lease = renewLease(item, callLease, { onLost: () => running.end('lease-lost'), deadlines: deps.deadlines, log: deps.log });
  try {
    await settle(item, addressedCall, hasBudget, running, deps); // no fail point: inside
  } finally {
    lease.stop();
    running.release();
  }
}

/** Executes the call, then settles its item: frames, command, ack. After a crash between two of them redelivery repairs the rest. */
async function settle(item: WorkItem, { call, surface, framesAt }: AddressedCall, hasBudget: boolean, running: RunningCall, deps: ConsumeDeps): Promise<void> {
  const { bus, database, clock, log, metrics } = deps;
  const startedAtMs = performance.now();
  const mayBeSecond = mayBeDoneAlready(item, call.republished, clock.nowMs());
  if (call.reply !== null && mayBeSecond) {
    // The effect's row says whether a redelivered actor's call still needs a result.
    const isOpen = await retryWhileTransient(() => isEffectOpen(database, call.callId), abortSignalOf(running.signal)); // no fail point: reads
    if (isOpen !== true) return item.ack();
  }
  const span = callSpan(deps.tracing, deps.upstreams, { call, delivery: item.deliveryCount, mayBeSecond: mayBeSecond && call.reply !== null });
  const attempts = new CallAttempts();
  const execution: Execution = {
    call,
    surface,
    attempt: item.deliveryCount,
    signal: running.signal,
    mayPublish: () => running.cause !== 'lease-lost',
    tokens: bus.tokens,
    framesAt,
    nowMs: clock.nowMs(),
    attempted: (attempt) => {
      attempts.add(attempt);
      span.attempted(attempt);
    },
    capturesContent: deps.tracing.content !== 'off',
  };
  let result: CallResult | null;
  try {
    const isPlain = item.deliveryCount === 1 && hasBudget;
    result = await (isPlain ? execute(execution, deps) : executeOnce(execution, framesAt, item, hasBudget, running, deps));
  } catch (error) {
    // The next delivery links to this span.
    span.end(failureOf(error).code);
    throw error;
  }
  if (result === null) return item.ack();
  // Publishes are lost while disconnected; the terminal frame was published just now.
  const isReachable = bus.isReady();
  failPoint('call.made');
  const cause = running.cause;
  /** As metrics and spans name it. */
  const label = cause === 'lease-lost' ? 'abandoned' : cause;
  const outcome = result.type === 'failed' && (label === 'cancelled' || label === 'abandoned') ? label : result.type;
  span.end(result.type === 'completed' ? null : (label ?? result.failure.code));
  metrics.add('routerCalls', { kind: call.reply === null ? 'client' : 'actor', outcome });
  if (cause === 'lease-lost') return item.nak(0);
  // The terminal frame may be lost: without an ack the redelivery reads the stored frames and ends the call.
  if (call.reply === null && !isReachable && cause === null) return item.nak(FAULT_RETRY_MS);
  if (log.writes?.('info') !== false) {
    const line = callLine({ call, result, attempts, cause, durationMs: performance.now() - startedAtMs });
    log.info({ ...line, delivery: item.deliveryCount, ...idsOf(call) }, 'a router call has ended');
  }
  // An actor that aborted its call takes no result.
  if (call.reply !== null && cause !== 'cancelled')
    await reportResult(call, call.reply, result, () => running.cause === 'lease-lost', { commands: bus.commands, clock, log }); // no fail point: inside
  await item.ack();
  failPoint('call.acked');
}

/** Executes the call unless stored frames of an earlier delivery forbid it. Null: the terminal frame is stored. */
async function executeOnce(
  execution: Execution,
  framesAt: string,
  item: WorkItem,
  hasBudget: boolean,
  running: RunningCall,
  deps: ConsumeDeps,
): Promise<CallResult | null> {
  const { call } = execution;
  const replay = () => deps.bus.tokens.replay(framesAt);
  // For a redelivered client's call the stored frames decide whether it is executed again.
  const published = item.deliveryCount > 1 && call.reply === null ? await publishedOf(item, call, replay) : 'nothing'; // no fail point: reads
  if (published === 'end') return null;
  if (item.deliveryCount > MAX_DELIVERIES) await deadLetterCall(call, running, deps); // no fail point: dead-letters
  return hasBudget || published === 'content' ? resultOf(execution, item.deliveryCount, published, deps) : refuseCall(execution, overloaded());
}

function idsOf({ callId, keyId, traceparent, reply }: RouterCall) {
  const traceId = traceIdIn(traceparent);
  if (reply === null) return { call_id: callId, key_id: keyId, trace_id: traceId };
  return { call_id: callId, key_id: keyId, trace_id: traceId, session_id: reply.sessionId, ...actorIds(reply.actorId) };
}

/** A client's call ends without the dead letter when the database is unavailable. */
async function deadLetterCall(call: RouterCall, running: RunningCall, { database, log, metrics }: ConsumeDeps): Promise<void> {
  const partition = call.reply === null ? null : partitionOf(call.reply.sessionId);
  const letter = { id: call.callId, source: 'call', partition, reason: GAVE_UP, body: JSON.stringify(call) } as const;
  try {
    // no fail point: dead-letters
    await (call.reply === null
      ? storeDeadLetter(database, letter)
      : retryWhileTransient(() => storeDeadLetter(database, letter), abortSignalOf(running.signal)));
    metrics.add('deadLetters', { source: 'call' });
  } catch (error) {
    log.warn({ err: error, call_id: call.callId }, 'the dead letter of a call could not be stored');
  }
}

function resultOf(execution: Execution, delivery: number, published: 'content' | 'nothing', deps: ConsumeDeps): CallResult | Promise<CallResult> {
  if (published === 'content') return refuseCall(execution, new SwitchyardError('router.provider_unavailable', 'the worker died in the middle of the answer'));
  if (delivery > MAX_DELIVERIES) return refuseCall(execution, new SwitchyardError('router.provider_unavailable', GAVE_UP));
  return execute(execution, deps);
}

function execute(execution: Execution, deps: ConsumeDeps): Promise<CallResult> {
  return executeCall(execution, { ...deps, log: logAbout(deps.log, () => idsOf(execution.call)) });
}

/** @throws when the frames can't be read, so that the item is retried; after the last delivery returns `nothing` */
async function publishedOf(
  { deliveryCount: delivery }: WorkItem,
  { callId }: RouterCall,
  replay: () => Promise<Uint8Array[]>,
): Promise<'nothing' | 'content' | 'end'> {
  try {
    return publishedIn(callId, await replay()); // no fail point: reads
  } catch (error) {
    if (delivery <= MAX_DELIVERIES) throw error;
    return 'nothing';
  }
}

/** What readers saw of earlier deliveries. */
function publishedIn(callId: string, frames: readonly Uint8Array[]): 'nothing' | 'content' | 'end' {
  let published: 'nothing' | 'content' = 'nothing';
  for (const bytes of frames) {
    const frame = readFrame(callId, bytes);
    if (frame === null || frame.kind === 'open') continue;
    if (frame.kind !== 'content' && frame.kind !== 'text') return 'end';
    published = 'content';
  }
  return published;
}

function overloaded(): SwitchyardError {
  const message = 'Too many large requests are in flight';
  return new SwitchyardError('router.provider_overloaded', message, { details: { retryAfterMs: BUDGET_RETRY_MS } });
}

/**
 * Parses the call and clears the item's body, which would stay in memory for minutes.
 * @returns why it is not a call; null when its version or surface is unknown
 */
function callIn(item: WorkItem): AddressedCall | string | null {
  const body = jsonIn(item.body);
  item.body = '';
  if (isClientCall(body)) return addressed(body);
  const version = versionOf(body);
  if (version === null) return 'not a message of ours';
  if (version > ROUTER_CALL_VERSION) return null;
  const parsed = routerCall.safeParse(body);
  if (!parsed.success) return `not a router call: ${z.prettifyError(parsed.error)}`;
  return addressed(parsed.data);
}

/** A call without a valid subject for its frames would fail in each worker, for ever. */
function addressed(call: RouterCall): AddressedCall | string | null {
  const surface = surfaces.get(call.surface ?? FIRST_SURFACE);
  if (surface === undefined) return null;
  try {
    return { call, surface, framesAt: subjectOf(addresses.tokens, call.origin, call.callId) };
  } catch {
    return 'not a router call: its frames have no address';
  }
}
