/** Time outside all marks. */
const UNMARKED = 'unmarked';

/** The kind with the longest total since the last `take`. */
export interface LongestWork {
  kind: string;
  ms: number;
  /** Null: none. When `kind` is `unmarked`, the unmarked work began after this one. */
  lastMarked: string | null;
}

/**
 * Attributes event loop time to kinds of work. A mark holds until the next one, or until its event loop callback has ended with its microtasks; a
 * continuation after real I/O must be marked again. Costs two clock readings; AsyncLocalStorage would slow every promise of the process.
 *
 * Kinds become metric labels: route templates and names in the code, never foreign text.
 */
export class WorkMarks {
  readonly #nowMs: () => number;
  readonly #totals = new Map<string, number>();
  #kind: string | null = null;
  #sinceMs: number;
  #lastMarked: string | null = null;
  #endsWithCallback = false;
  readonly #end = () => {
    this.#endsWithCallback = false;
    this.#attribute();
    this.#kind = null;
  };
  // Runs among the callback's microtasks; its `nextTick` runs after all of them.
  readonly #endBehindMicrotasks = () => process.nextTick(this.#end);

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
  }

  /** For the rest of this event loop callback. */
  mark(kind: string): void {
    this.#attribute();
    this.#kind = kind;
    this.#lastMarked = kind;
    if (this.#endsWithCallback) return;
    this.#endsWithCallback = true;
    queueMicrotask(this.#endBehindMicrotasks);
  }

  /** Idle time counts as `unmarked`. Resets the totals. */
  take(): LongestWork {
    this.#attribute();
    let longest: LongestWork = { kind: UNMARKED, ms: 0, lastMarked: this.#lastMarked };
    for (const [kind, ms] of this.#totals) if (ms > longest.ms) longest = { ...longest, kind, ms };
    this.#totals.clear();
    this.#lastMarked = null;
    return longest;
  }

  #attribute(): void {
    const nowMs = this.#nowMs();
    const kind = this.#kind ?? UNMARKED;
    this.#totals.set(kind, (this.#totals.get(kind) ?? 0) + nowMs - this.#sinceMs);
    this.#sinceMs = nowMs;
  }
}

export const workMarks = new WorkMarks();
