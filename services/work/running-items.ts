import { setMaxListeners } from 'node:events';
import { Deadlines } from '#shared/deadlines.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { SlotMap } from '#shared/slot-map.ts';
import type { Span } from '#shared/telemetry/tracing.ts';
import { abortSignalOf, ItemAbortController, type ItemSignal } from './item-signal.ts';

/** What ended an item early. `cancelled`: superseded, or without a reader. `lease-lost`: another worker executes it, or may by now. */
export type EndCause = 'cancelled' | 'deadline' | 'lease-lost';

/** The abort reason of each cause. */
export type EndReasons = Readonly<Record<EndCause, () => SwitchyardError>>;

export const itemEndReasons: EndReasons = {
  cancelled: () => new SwitchyardError('service.no_answer', 'the effect of the item was superseded'),
  deadline: () => new SwitchyardError('service.no_answer', 'the item is past its deadline'),
  'lease-lost': () => new SwitchyardError('bus.lease_lost', 'the worker lost the lease of the item'),
};

/** One item in flight. */
export class RunningItem {
  /** Number of its delivery, from 1. */
  readonly delivery: number;
  /** In ids of frames. Set before the item is executed. */
  attempt: number;
  /** Whether an earlier delivery may have begun it. Set before the item is executed; false for items without an effect's row. */
  mayBeStarted = false;
  /** Null: not recorded. */
  span: Span | null = null;
  readonly #controller = new ItemAbortController();
  readonly #reasons: EndReasons;
  readonly #releases: (() => void)[] = [];
  #cause: EndCause | null = null;
  #isProtected = false;
  #isKept = false;
  #isLeaseOver = false;
  #isLeaseLost = false;
  #signal: AbortSignal | null = null;
  #leaseLost: AbortController | null = null;

  constructor(delivery: number, reasons: EndReasons = itemEndReasons) {
    this.delivery = delivery;
    this.attempt = delivery;
    this.#reasons = reasons;
  }

  /** Aborted by the first cause; its reason is a SwitchyardError. */
  get ended(): ItemSignal {
    return this.#controller;
  }

  /** `ended`, for APIs that need an AbortSignal. */
  get signal(): AbortSignal {
    this.#signal ??= withManyListeners(abortSignalOf(this.#controller));
    return this.#signal;
  }

  /** Aborted once another worker may have the item, whatever ended it before. Of a kept item at its deadline. */
  get leaseLost(): AbortSignal {
    if (this.#leaseLost === null) {
      this.#leaseLost = new AbortController();
      withManyListeners(this.#leaseLost.signal);
      if (this.#isLeaseLost) this.#leaseLost.abort(this.#reasons['lease-lost']());
    }
    return this.#leaseLost.signal;
  }

  get isLeaseLost(): boolean {
    return this.#isLeaseLost;
  }

  /** Whether its lease was lost, though a kept item goes on. */
  get isLeaseOver(): boolean {
    return this.#isLeaseOver;
  }

  /** The first cause; null while there is none. */
  get cause(): EndCause | null {
    return this.#cause;
  }

  isCancelled(): boolean {
    return this.#cause === 'cancelled';
  }

  end(cause: EndCause): void {
    if (cause === 'lease-lost') {
      this.#isLeaseOver = true;
      if (this.#isKept && this.#cause === null) return;
      this.#loseLease();
    }
    if (this.#cause !== null || (cause === 'cancelled' && this.#isProtected)) return;
    this.#cause = cause;
    this.#controller.abort(this.#reasons[cause]());
    if (this.#isLeaseOver) this.#loseLease();
  }

  #loseLease(): void {
    if (this.#isLeaseLost) return;
    this.#isLeaseLost = true;
    this.#leaseLost?.abort(this.#reasons['lease-lost']());
  }

  /** From now on the item can't be cancelled. No effect once it was. */
  protect(): void {
    this.#isProtected = true;
  }

  /** From now on the loss of its lease does not end the item before its deadline: another worker may get it, and must not execute it. */
  keep(): void {
    this.#isKept = true;
  }

  /** Ends a kept item, too. */
  giveUp(): void {
    this.#isKept = false;
    this.end('lease-lost');
  }

  /** @param leave run on release */
  onRelease(leave: () => void): void {
    this.#releases.push(leave);
  }

  release(): void {
    for (const leave of this.#releases) leave();
  }
}

/** Items in flight at one worker, of all its kinds, ended at their deadline. A drain that takes too long gives up their leases. */
export class RunningItems {
  /** For all time limits of the worker's items. */
  readonly deadlines = new Deadlines();
  readonly #running = new SlotMap<RunningItem>();

  get count(): number {
    return this.#running.size;
  }

  /** @param remainingMs until its deadline; ended at once when there is none left */
  begin(delivery: number, remainingMs: number, reasons?: EndReasons): RunningItem {
    const running = new RunningItem(delivery, reasons);
    const deadline = this.deadlines.begin(remainingMs, () => running.end('deadline'));
    if (remainingMs <= 0) running.end('deadline');
    const slot = this.#running.add(running);
    running.onRelease(() => {
      this.deadlines.stop(deadline);
      this.#running.remove(slot);
    });
    return running;
  }

  loseAllLeases(): void {
    for (const running of this.#running.values()) running.giveUp();
  }
}

/** An item may request many servers at once, each with a listener. */
function withManyListeners(signal: AbortSignal): AbortSignal {
  setMaxListeners(0, signal);
  return signal;
}
