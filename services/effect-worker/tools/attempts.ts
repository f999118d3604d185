import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '#shared/clock.ts';
import { ToolFailure } from './tool-failure.ts';

const MAX_TRIES = 4;
/** Covers a restart behind a load balancer, not an outage. */
const UNREACHABLE_PAUSES_MS = [250, 1_000];
/** Without a Retry-After. */
const BUSY_PAUSES_MS = [1_000, 2_000];
const REPEAT_PAUSE_MS = 250;
/** JSON-RPC: internal error of the server. */
const INTERNAL_ERROR = -32_603;

export interface AttemptOptions {
  repeatable: boolean;
  /** Ends the tries. */
  signal: AbortSignal;
  deadlineAtMs: number;
  clock: Clock;
}

/**
 * Retries a request that was certainly not carried out; one that may have been only if it is `repeatable`.
 * @throws ToolFailure of the last try; `stopped` when the signal is aborted between two tries
 */
export async function withAttempts<Result>({ repeatable, signal, deadlineAtMs, clock }: AttemptOptions, attempt: () => Promise<Result>): Promise<Result> {
  const earlier: ToolFailure[] = [];
  for (;;) {
    try {
      return await attempt(); // no fail point: inside
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error;
      const pauseMs = pauseAfter(error, earlier, repeatable);
      if (pauseMs === null || signal.aborted || clock.nowMs() + pauseMs >= deadlineAtMs) throw error;
      earlier.push(error);
      // no fail point: pauses
      await pause(pauseMs, undefined, { signal }).catch(() => {
        throw new ToolFailure('stopped', 'the call was cancelled', { sent: error.sent });
      });
    }
  }
}

/** Aborts this waiter without cancelling the shared work. @throws ToolFailure `stopped` when the signal is aborted first */
export function orStopped<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    // A request in flight ends by the same signal and knows whether it was sent: its failure goes first.
    const onAbort = () => setImmediate(() => reject(new ToolFailure('stopped', 'the call was cancelled')));
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort)); // no fail point: waits
  });
}

/** Null: no further try. */
function pauseAfter(failure: ToolFailure, earlier: readonly ToolFailure[], repeatable: boolean): number | null {
  if (!failure.retryable || earlier.length + 1 >= MAX_TRIES) return null;
  const before = earlier.filter(({ kind }) => kind === failure.kind).length;
  switch (failure.kind) {
    case 'unreachable':
      return UNREACHABLE_PAUSES_MS[before] ?? null;
    case 'busy': {
      const pauseMs = BUSY_PAUSES_MS[before];
      return pauseMs === undefined ? null : (failure.retryAfterMs ?? pauseMs);
    }
    case 'session_lost':
      return before === 0 ? 0 : null;
    case 'lost':
      return repeatable && before === 0 ? REPEAT_PAUSE_MS : null;
    case 'error':
      return repeatable && before === 0 && failure.rpcCode === INTERNAL_ERROR ? REPEAT_PAUSE_MS : null;
    case 'auth_failed':
    case 'timeout':
    case 'unreadable':
    case 'stopped':
      return null;
  }
}
