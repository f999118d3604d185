import { setMaxListeners } from 'node:events';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Timers take no longer delay. */
const MAX_TIMER_MS = 2_147_483_647;

export interface RunningItem {
  /** Aborted when the item's time is over, when it is given up, and when it is cancelled. */
  signal: AbortSignal;
  /** Aborted only when the item is given up: another worker does it, or may by now. */
  abandoned: AbortSignal;
  abandon(): void;
  /** Nobody waits for the item any more. Changes nothing once it is held. */
  cancel(): void;
  isCancelled(): boolean;
  /** From now on it is carried through, whoever waits for it. Changes nothing once it is cancelled. */
  hold(): void;
  /** The item is settled. */
  forget(): void;
}

/** The items in hand, so that a drain that takes too long can hand them back. */
export class RunningItems {
  readonly #clock: Clock;
  readonly #running = new Set<RunningItem>();

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  begin(deadlineAtMs: number): RunningItem {
    const ended = new AbortController();
    const abandoned = new AbortController();
    // An item may ask many servers at once, each of which listens.
    setMaxListeners(0, ended.signal, abandoned.signal);
    const restMs = Math.min(Math.max(deadlineAtMs - this.#clock.nowMs(), 0), MAX_TIMER_MS);
    const timer = setTimeout(() => ended.abort(new SwitchyardError('service.no_answer', 'the item is past its deadline')), restMs);
    let state: 'open' | 'cancelled' | 'held' = 'open';
    const item: RunningItem = {
      signal: ended.signal,
      abandoned: abandoned.signal,
      abandon: () => {
        const reason = new SwitchyardError('bus.lease_lost', 'the worker gave the item up');
        abandoned.abort(reason);
        ended.abort(reason);
      },
      cancel: () => {
        if (state !== 'open') return;
        state = 'cancelled';
        ended.abort(new SwitchyardError('service.no_answer', 'nobody waits for the item any more'));
      },
      isCancelled: () => state === 'cancelled',
      hold: () => {
        if (state === 'open') state = 'held';
      },
      forget: () => {
        clearTimeout(timer);
        this.#running.delete(item);
      },
    };
    this.#running.add(item);
    return item;
  }

  abandonAll(): void {
    for (const item of [...this.#running]) item.abandon();
  }
}
