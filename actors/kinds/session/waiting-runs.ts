import { assign } from 'xstate';
import type { RunError } from '#shared/contracts/agent/run-error.ts';
import { cancelledError } from '../run/failures.ts';
import type { SessionActions, SessionContext, SessionEvent } from './types.ts';

/** Bounds the queue, which is part of the snapshot that each command reads and writes. Beyond it a run fails at once rather than after hours. */
export const MAX_WAITING_RUNS = 100;

type StartArgs = { context: SessionContext; event: Extract<SessionEvent, { type: 'run.start' }> };
type ExpiredArgs = { context: SessionContext; event: Extract<SessionEvent, { type: 'run.expired' }> };
type CancelArgs = { event: Extract<SessionEvent, { type: 'run.cancel' }> };

export const missing: RunError = { code: 'session_error', message: 'the session is not there any more', details: {} };
const tooManyWaiting: RunError = { code: 'session_error', message: `${MAX_WAITING_RUNS} runs wait for the session already`, details: {} };
const unknownRun: RunError = { code: 'timeout', message: 'the run is past its time, and its session knows nothing of it', details: {} };
const waitedTooLong: RunError = { code: 'timeout', message: 'the run waited longer for its session than a run may take', details: {} };

export function enqueue() {
  return assign<SessionContext, StartArgs['event'], undefined, SessionEvent, never>({ queue: ({ context, event }) => [...context.queue, event.runId] });
}

export function awaitRun() {
  return { type: 'awaitRun' as const, params: ({ event }: StartArgs): SessionActions['awaitRun'] => ({ runId: event.runId }) };
}

export function failTooManyWaiting() {
  return { type: 'failRuns' as const, params: ({ event }: StartArgs): SessionActions['failRuns'] => ({ runIds: [event.runId], error: tooManyWaiting }) };
}

export function failExpired() {
  return { type: 'failRuns' as const, params: ({ event }: ExpiredArgs): SessionActions['failRuns'] => ({ runIds: [event.runId], error: waitedTooLong }) };
}

/** An unsettled run of which only the row is left. */
export function failUnknownRun() {
  return { type: 'failRuns' as const, params: ({ event }: ExpiredArgs): SessionActions['failRuns'] => ({ runIds: [event.runId], error: unknownRun }) };
}

/** A run that has not begun, whether or not its start has come. */
export function failCancelled() {
  return { type: 'failRuns' as const, params: ({ event }: CancelArgs): SessionActions['failRuns'] => ({ runIds: [event.runId], error: cancelledError }) };
}

export function dequeue() {
  return assign<SessionContext, ExpiredArgs['event'] | CancelArgs['event'], undefined, SessionEvent, never>({
    queue: ({ context, event }) => context.queue.filter((runId) => runId !== event.runId),
  });
}

/** The oldest waiting run. */
export function beginWaitingRun() {
  return [
    assign<SessionContext, SessionEvent, undefined, SessionEvent, never>({
      runId: ({ context }) => context.queue[0] ?? null,
      queue: ({ context }) => context.queue.slice(1),
    }),
    { type: 'beginRun' as const, params: ({ context }: { context: SessionContext }): SessionActions['beginRun'] => ({ runId: context.runId ?? '' }) },
  ] as const;
}

export function failWaiting() {
  return {
    type: 'failRuns' as const,
    params: ({ context }: { context: SessionContext }): SessionActions['failRuns'] => ({ runIds: context.queue, error: missing }),
  };
}
