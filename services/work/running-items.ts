import { setMaxListeners } from 'node:events';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** The longest delay of a Node timer. */
const MAX_TIMER_MS = 2_147_483_647;

export interface RunningItem {
  /** Aborted when the deadline passes, the lease is lost, or the item is cancelled. */
  signal: AbortSignal;
  /** Another worker may have the item by now. */
  leaseLost: AbortSignal;
  loseLease(): void;
  /** The effect was superseded. No effect after `protect`. */
  cancel(): void;
  isCancelled(): boolean;
  /** From now on the item can't be cancelled. No effect after `cancel`. */
  protect(): void;
  release(): void;
}

/** Items in flight. A drain that takes too long gives up their leases. */
export class RunningItems {
  readonly #clock: Clock;
  readonly #running = new Set<RunningItem>();

  constructor({ clock }: { clock: Clock }) {
    this.#clock = clock;
  }

  begin(deadlineAtMs: number): RunningItem {
    const ended = new AbortController();
    const leaseLost = new AbortController();
    // An item may request many servers at once, each with a listener.
    setMaxListeners(0, ended.signal, leaseLost.signal);
    const restMs = Math.min(Math.max(deadlineAtMs - this.#clock.nowMs(), 0), MAX_TIMER_MS);
    const timer = setTimeout(() => ended.abort(new SwitchyardError('service.no_answer', 'the item is past its deadline')), restMs);
    let state: 'open' | 'cancelled' | 'protected' = 'open';
    const item: RunningItem = {
      signal: ended.signal,
      leaseLost: leaseLost.signal,
      loseLease: () => {
        const reason = new SwitchyardError('bus.lease_lost', 'the worker lost the lease of the item');
        leaseLost.abort(reason);
        ended.abort(reason);
      },
      cancel: () => {
        if (state !== 'open') return;
        state = 'cancelled';
        ended.abort(new SwitchyardError('service.no_answer', 'the effect of the item was superseded'));
      },
      isCancelled: () => state === 'cancelled',
      protect: () => {
        if (state === 'open') state = 'protected';
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
