import { setMaxListeners } from 'node:events';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Timers take no longer delay. */
const MAX_TIMER_MS = 2_147_483_647;

export interface RunningItem {
  /** Aborted when the item's time is over, when it is given up, and when it is cancelled. */
  signal: AbortSignal;
  /** Aborted only when the item is given up: another worker does it, or may by now. */
  leaseLost: AbortSignal;
  loseLease(): void;
  /** Nobody waits for the item any more. Changes nothing once it is held. */
  cancel(): void;
  isCancelled(): boolean;
  /** From now on it is carried through, whoever waits for it. Changes nothing once it is cancelled. */
  protect(): void;
  /** The item is settled. */
  release(): void;
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
    const leaseLost = new AbortController();
    // An item may ask many servers at once, each of which listens.
    setMaxListeners(0, ended.signal, leaseLost.signal);
    const restMs = Math.min(Math.max(deadlineAtMs - this.#clock.nowMs(), 0), MAX_TIMER_MS);
    const timer = setTimeout(() => ended.abort(new SwitchyardError('service.no_answer', 'the item is past its deadline')), restMs);
    let state: 'open' | 'cancelled' | 'held' = 'open';
    const item: RunningItem = {
      signal: ended.signal,
      leaseLost: leaseLost.signal,
      loseLease: () => {
        const reason = new SwitchyardError('bus.lease_lost', 'the worker gave the item up');
        leaseLost.abort(reason);
        ended.abort(reason);
      },
      cancel: () => {
        if (state !== 'open') return;
        state = 'cancelled';
        ended.abort(new SwitchyardError('service.no_answer', 'nobody waits for the item any more'));
      },
      isCancelled: () => state === 'cancelled',
      protect: () => {
        if (state === 'open') state = 'held';
      },
      release: () => {
        clearTimeout(timer);
        this.#running.delete(item);
      },
    };
    this.#running.add(item);
    return item;
  }

  loseAllLeases(): void {
    for (const item of [...this.#running]) item.loseLease();
  }
}
