import type { Chance } from './random.ts';

/** Start of simulated time: arbitrary but constant. */
export const EPOCH_MS = Date.parse('2030-01-01T00:00:00Z');
/** One call in this many is slow: it is mostly passed over, so that others overtake it. */
const SLOW_ONE_IN = 7;
const PASS_SLOW_BUT_ONE_IN = 12;

const realSetImmediate = setImmediate;

/** A process, which can be killed or paused. */
export interface Process {
  readonly id: string;
  readonly role: 'host' | 'worker' | 'gateway' | 'broker';
  state: 'up' | 'paused' | 'dead';
  /** Error of its wall clock. */
  skewMs: number;
  /** Sorted by due time. */
  readonly timers: SimulatedTimer[];
}

type Outcome = { value: unknown } | { error: unknown };

/** A call to a store or to the environment: executed at its step, and answered then or later. */
export interface Parked {
  process: Process;
  label: string;
  execute(): unknown;
  /** The caller's error when the connection breaks. */
  lost(): Error;
  /** Whether it waits for another process, as a statement for a lock. */
  isBlocked(): boolean;
  /** Null until it is executed. */
  outcome: Outcome | null;
  /** Its answer is no longer awaited. */
  isDetached: boolean;
  isSlow: boolean;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface Inbox {
  process: Process;
  label: string;
  /** FIFO. */
  messages: (() => void)[];
}

/** The handle that `setTimeout` returns to simulated code. */
export class SimulatedTimer {
  dueAtMs: number;
  readonly process: Process;
  readonly run: () => void;
  readonly everyMs: number | null;
  readonly #scheduler: Scheduler;
  readonly #delayMs: number;

  constructor(scheduler: Scheduler, process: Process, run: () => void, delayMs: number, everyMs: number | null) {
    this.#scheduler = scheduler;
    this.#delayMs = delayMs;
    this.process = process;
    this.run = run;
    this.everyMs = everyMs;
    this.dueAtMs = scheduler.nowMs + delayMs;
  }

  refresh(): this {
    this.#scheduler.clear(this);
    this.dueAtMs = this.#scheduler.nowMs + this.#delayMs;
    this.#scheduler.enqueue(this);
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
}

/**
 * Decides the next step. Every request between processes is parked here; between two steps all promises that can settle have
 * settled, so a step belongs to one process and a seed always gives the same steps.
 */
export class Scheduler {
  readonly chance: Chance;
  nowMs = EPOCH_MS;
  /** The process whose code runs now. */
  current: Process | null = null;
  steps = 0;
  readonly trace: string[] = [];
  readonly parked: Parked[] = [];
  readonly #inboxes = new Map<string, Inbox>();
  readonly processes: Process[] = [];
  #hash = 0x811c9dc5;
  #hashHigh = 0xcbf29ce4;

  constructor(chance: Chance) {
    this.chance = chance;
  }

  /** Of all steps so far, in order. */
  get traceHash(): string {
    return `${this.#hash.toString(36)}-${this.#hashHigh.toString(36)}`;
  }

  process(id: string, role: Process['role'], skewMs = 0): Process {
    const process: Process = { id, role, state: 'up', skewMs, timers: [] };
    this.processes.push(process);
    return process;
  }

  /** As kill -9: nothing of it goes on. What it had sent already may still be executed. */
  kill(process: Process, { evenSent }: { evenSent: boolean }): void {
    process.state = 'dead';
    process.timers.length = 0;
    this.processes.splice(this.processes.indexOf(process), 1);
    for (const op of this.parked.filter((one) => one.process === process)) {
      if (evenSent || op.outcome !== null || this.chance.oneIn(2)) this.remove(op);
      else op.isDetached = true;
    }
    for (const [key, inbox] of this.#inboxes) if (inbox.process === process) this.#inboxes.delete(key);
  }

  /** A call of the running process, or of the given one. It is never answered once that process is dead. */
  park<Result>(process: Process, label: string, lost: () => Error, execute: () => unknown, isBlocked: () => boolean = never): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      if (process.state === 'dead') return;
      const op: Parked = {
        ...{ process, execute, lost, isBlocked, outcome: null, isDetached: false, isSlow: this.chance.oneIn(SLOW_ONE_IN) },
        label: `${process.id} ${label}`,
        resolve: resolve as (value: unknown) => void,
        reject,
      };
      this.parked.push(op);
    });
  }

  /** A message for a process; those under one key are delivered in order. */
  post(process: Process, key: string, label: string, run: () => void): void {
    if (process.state === 'dead') return;
    const inbox = this.#inboxes.get(key);
    if (inbox !== undefined) inbox.messages.push(run);
    else this.#inboxes.set(key, { process, label: `${process.id} ${label}`, messages: [run] });
  }

  setTimer(process: Process, run: () => void, delayMs: number, everyMs: number | null): SimulatedTimer {
    const timer = new SimulatedTimer(this, process, run, delayMs, everyMs);
    if (process.state !== 'dead') this.enqueue(timer);
    return timer;
  }

  enqueue(timer: SimulatedTimer): void {
    const { timers } = timer.process;
    let index = timers.length;
    while (index > 0 && (timers[index - 1]?.dueAtMs ?? 0) > timer.dueAtMs) index -= 1;
    timers.splice(index, 0, timer);
  }

  clear(timer: SimulatedTimer): void {
    const index = timer.process.timers.indexOf(timer);
    if (index >= 0) timer.process.timers.splice(index, 1);
  }

  /** One step of one process: `run`, and all that follows from it without another process. */
  async step(process: Process | null, label: string, run: () => void): Promise<void> {
    this.steps += 1;
    this.#record(label);
    this.current = process;
    run();
    await new Promise((resolve) => realSetImmediate(resolve));
    this.current = null;
  }

  /** Calls that may be executed now: a paused process gets no answers, but what it has sent is executed. */
  nextOp(): Parked | null {
    const { parked, chance } = this;
    if (parked.length === 0) return null;
    const first = chance.below(parked.length);
    for (let n = 0; n < parked.length; n += 1) {
      const op = parked[(first + n) % parked.length] as Parked;
      if (!canGoOn(op)) continue;
      if (op.isSlow && !chance.oneIn(PASS_SLOW_BUT_ONE_IN)) continue;
      return op;
    }
    return null;
  }

  /** The oldest that can be executed. */
  oldestOp(): Parked | null {
    return this.parked.find(canGoOn) ?? null;
  }

  /** Executes a call, unless it has been, and answers it. */
  async runToEnd(op: Parked): Promise<void> {
    await this.carryOut(op);
    if (op.isDetached || op.process.state !== 'up') return;
    this.remove(op);
    const { outcome } = op;
    if (outcome === null) return;
    if ('error' in outcome) await this.step(op.process, `${op.label} !`, () => op.reject(outcome.error));
    else await this.step(op.process, op.label, () => op.resolve(outcome.value));
  }

  /** Executes a call and leaves its answer in flight. */
  async carryOut(op: Parked): Promise<void> {
    if (op.outcome !== null) return;
    this.#record(`${op.label} >`);
    let outcome: Outcome;
    try {
      const value = op.execute();
      outcome = { value: value instanceof Promise ? await value : value };
    } catch (error) {
      outcome = { error };
    }
    op.outcome = outcome;
    if (op.isDetached) this.remove(op);
  }

  /** The connection breaks: the caller gets an error. What was not executed may still be, later. */
  async lose(op: Parked, { staysInFlight }: { staysInFlight: boolean }): Promise<void> {
    if (op.isDetached || op.process.state !== 'up') return;
    this.remove(op);
    if (staysInFlight && op.outcome === null) this.parked.push({ ...op, isDetached: true, isSlow: true });
    await this.step(op.process, `${op.label} ${op.outcome === null ? 'lost' : 'unanswered'}`, () => op.reject(op.lost()));
  }

  /** A server has ended, and every connection to it: the outcome of what was in flight is unknown. @param of one process; by default of all */
  breakOff(lost: () => Error, of: Process | null = null): void {
    for (const op of this.parked.filter((one) => one.lost === lost && (of === null || one.process === of))) {
      if (op.isDetached) this.remove(op);
      else op.outcome = { error: lost() };
    }
  }

  remove(op: Parked): void {
    const index = this.parked.indexOf(op);
    if (index >= 0) this.parked.splice(index, 1);
  }

  nextInbox(): Inbox | null {
    const open = [...this.#inboxes.values()].filter(({ process }) => process.state === 'up');
    return open.length === 0 ? null : this.chance.pick(open);
  }

  /** Delivers the oldest message of an inbox, or loses it. */
  async deliver(inbox: Inbox, { isLost }: { isLost: boolean } = { isLost: false }): Promise<void> {
    const message = inbox.messages.shift();
    if (inbox.messages.length === 0) for (const [key, one] of this.#inboxes) if (one === inbox) this.#inboxes.delete(key);
    if (message === undefined) return;
    if (isLost) this.#record(`${inbox.label} lost`);
    else await this.step(inbox.process, inbox.label, message);
  }

  /** Processes with a timer, the earliest first; the timers of a lagging process are overdue. */
  ringing(): { process: Process; timer: SimulatedTimer }[] {
    const found: { process: Process; timer: SimulatedTimer }[] = [];
    for (const process of this.processes) {
      const [timer] = process.timers;
      if (process.state === 'up' && timer !== undefined) found.push({ process, timer });
    }
    return found.sort((left, right) => left.timer.dueAtMs - right.timer.dueAtMs);
  }

  /** Advances time until the timer is due; it fires, with the other overdue timers of the process, before the process receives anything. */
  async ring({ process, timer }: { process: Process; timer: SimulatedTimer }): Promise<void> {
    this.nowMs = Math.max(this.nowMs, timer.dueAtMs);
    for (const due of process.timers.filter(({ dueAtMs }) => dueAtMs <= this.nowMs)) {
      if (!process.timers.includes(due)) continue;
      this.clear(due);
      if (due.everyMs !== null) {
        due.dueAtMs = this.nowMs + due.everyMs;
        this.enqueue(due);
      }
      await this.step(process, `${process.id} timer`, due.run);
    }
  }

  note(what: string): void {
    this.#record(what);
  }

  #record(label: string): void {
    this.trace.push(label);
    let { low, high } = { low: this.#hash, high: this.#hashHigh };
    for (let index = 0; index < label.length; index += 1) {
      const code = label.charCodeAt(index);
      low = Math.imul(low ^ code, 0x01000193);
      high = Math.imul(high ^ code, 0x85ebca6b);
    }
    this.#hash = Math.imul(low ^ 10, 0x01000193) >>> 0;
    this.#hashHigh = Math.imul(high ^ 10, 0x85ebca6b) >>> 0;
  }
}

function never(): boolean {
  return false;
}

/** A paused process gets no answer. */
function canGoOn({ process, outcome, isBlocked }: Parked): boolean {
  return outcome === null ? !isBlocked() : process.state !== 'paused';
}
