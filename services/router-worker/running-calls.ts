import { z } from 'zod';
import type { NoticeBoard } from '#bus/bus.ts';
import { addresses, patternOf } from '#bus/subjects.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** How long an abort is remembered for a call that has not begun here: longer than an item waits in its queue when all is well. */
const REMEMBER_MS = 60_000;
/** Aborts remembered. They are rare, but every worker hears those of all others. */
const MAX_REMEMBERED = 10_000;
/** Timers take no longer delay. */
const MAX_TIMER_MS = 2_147_483_647;

/** Why a call was ended before it had ended by itself. `abandoned`: another worker makes it, or may by now. */
type Cause = 'cancelled' | 'deadline' | 'abandoned';

export interface RunningCall {
  signal: AbortSignal;
  /** Null while nothing has ended it. The first cause stands. */
  cause(): Cause | null;
  abandon(): void;
  /** The call is over: an abort finds nothing to abort any more. */
  forget(): void;
}

const REASONS = {
  cancelled: () => new SwitchyardError('router.cancelled', 'the call was cancelled'),
  deadline: () => new SwitchyardError('router.timeout', 'the call exceeded its time limit'),
  abandoned: () => new SwitchyardError('router.cancelled', 'the worker gave the call up'),
} as const satisfies Record<Cause, () => SwitchyardError>;

const abortMessage = z.looseObject({ abort: z.literal(true) });

/** The calls that this worker makes, and the aborts that came for others: one standing subscription for all of them. */
export class RunningCalls {
  readonly #clock: Clock;
  readonly #subscription: { stop(): Promise<void> };
  readonly #running = new Map<string, Set<(cause: Cause) => void>>();
  /** Until when each is remembered, the oldest first. */
  readonly #aborted = new Map<string, number>();

  constructor({ notices, clock }: { notices: NoticeBoard; clock: Clock }) {
    this.#clock = clock;
    this.#subscription = notices.subscribe(patternOf(addresses.control), (subject, body) => {
      if (isAbort(body)) this.#abort(subject.slice(subject.indexOf('.') + 1));
    });
  }

  /** Takes up a call, unless it is aborted already, or its time is over: then its signal says so at once. */
  begin(callId: string, deadlineAtMs: number): RunningCall {
    const controller = new AbortController();
    let cause: Cause | null = null;
    const end = (why: Cause) => {
      if (cause !== null) return;
      cause = why;
      controller.abort(REASONS[why]());
    };
    const restMs = deadlineAtMs - this.#clock.nowMs();
    const timer = setTimeout(end, Math.min(Math.max(restMs, 0), MAX_TIMER_MS), 'deadline');
    if (this.#isRemembered(callId)) end('cancelled');
    else if (restMs <= 0) end('deadline');
    // A set: an item that was delivered again while the first worker still lets go of it is the same call twice.
    const ends = this.#running.get(callId) ?? new Set();
    this.#running.set(callId, ends.add(end));
    return {
      signal: controller.signal,
      cause: () => cause,
      abandon: () => end('abandoned'),
      forget: () => {
        clearTimeout(timer);
        ends.delete(end);
        if (ends.size === 0) this.#running.delete(callId);
      },
    };
  }

  abandonAll(): void {
    for (const ends of [...this.#running.values()]) for (const end of ends) end('abandoned');
  }

  stop(): Promise<void> {
    return this.#subscription.stop();
  }

  #abort(callId: string): void {
    const ends = this.#running.get(callId);
    if (ends !== undefined) {
      for (const end of ends) end('cancelled');
      return;
    }
    this.#aborted.delete(callId);
    this.#aborted.set(callId, this.#clock.nowMs() + REMEMBER_MS);
    for (const [oldest, untilMs] of this.#aborted) {
      if (this.#aborted.size <= MAX_REMEMBERED && untilMs > this.#clock.nowMs()) break;
      this.#aborted.delete(oldest);
    }
  }

  #isRemembered(callId: string): boolean {
    const untilMs = this.#aborted.get(callId);
    return untilMs !== undefined && untilMs > this.#clock.nowMs();
  }
}

function isAbort(body: string): boolean {
  try {
    return abortMessage.safeParse(JSON.parse(body)).success;
  } catch {
    return false;
  }
}
