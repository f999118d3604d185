/** Time outside all marks. */
const UNMARKED = 'unmarked';

/** For microtasks: `queueMicrotask` makes three more objects. */
const settled = Promise.resolve();

/** Time of one kind since the last `take`. */
interface Total {
  readonly kind: string;
  ms: number;
}

/** The kind with the longest total since the last `take`. */
export interface LongestWork {
  kind: string;
  ms: number;
  /** Null: none. When `kind` is `unmarked`, the unmarked work began after this one. */
  lastMarked: string | null;
}

/**
 * Attributes event loop time to kinds of work. A mark holds until the next one, or until its event loop callback has ended with its microtasks; a
 * continuation after real I/O must be marked again. Costs two clock readings per callback and kind; AsyncLocalStorage would slow every promise of the process.
 *
 * Kinds become metric labels: route templates and names in the code, never foreign text.
 */
export class WorkMarks {
  readonly #nowMs: () => number;
  readonly #unmarked: Total = { kind: UNMARKED, ms: 0 };
  /** Without `unmarked`. They stay: kinds are few. */
  readonly #totals = new Map<string, Total>();
  #current = this.#unmarked;
  #sinceMs: number;
  #lastMarked: string | null = null;
  #endsWithCallback = false;
  readonly #end = () => {
    this.#endsWithCallback = false;
    this.#attribute();
    this.#current = this.#unmarked;
  };
  // Runs among the callback's microtasks; its `nextTick` runs after all of them.
  readonly #endBehindMicrotasks = () => process.nextTick(this.#end);

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
  }

  /** For the rest of this event loop callback. */
  mark(kind: string): void {
    this.#lastMarked = kind;
    if (this.#current.kind === kind) return;
    this.#attribute();
    this.#current = this.#totalOf(kind);
    if (this.#endsWithCallback) return;
    this.#endsWithCallback = true;
    void settled.then(this.#endBehindMicrotasks);
  }

  /** Idle time counts as `unmarked`. Resets the totals. */
  take(): LongestWork {
    this.#attribute();
    let longest = this.#unmarked;
    for (const total of this.#totals.values()) if (total.ms > longest.ms) longest = total;
    const taken = { kind: longest.kind, ms: longest.ms, lastMarked: this.#lastMarked };
    for (const total of [this.#unmarked, ...this.#totals.values()]) total.ms = 0;
    this.#lastMarked = null;
    return taken;
  }

  #totalOf(kind: string): Total {
    let total = this.#totals.get(kind);
    if (total === undefined) {
      total = { kind, ms: 0 };
      this.#totals.set(kind, total);
    }
    return total;
  }

  #attribute(): void {
    const nowMs = this.#nowMs();
    this.#current.ms += nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
  }
}

export const workMarks = new WorkMarks();
