/** Time outside all marks. */
const UNMARKED = 'unmarked';

/** The kind of work with the longest total since the last `take`. */
export interface LongestWork {
  kind: string;
  ms: number;
  /** The last kind that was marked; null: none. When `kind` is `unmarked`, the unmarked work began after this one. */
  lastMarked: string | null;
}

/**
 * Attributes event loop time to kinds of work. A mark holds until the next one, or until the event loop callback that set it has ended together
 * with its microtasks; a continuation after real I/O must be marked again. A mark costs two clock readings and no AsyncLocalStorage, which would
 * slow every promise of the process.
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
  // The microtask runs among those of the callback; the `nextTick` it schedules runs after all of them.
  readonly #endBehindMicrotasks = () => process.nextTick(this.#end);

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
  }

  /** Marks the rest of this event loop callback as work of this kind. */
  mark(kind: string): void {
    this.#attribute();
    this.#kind = kind;
    this.#lastMarked = kind;
    if (this.#endsWithCallback) return;
    this.#endsWithCallback = true;
    queueMicrotask(this.#endBehindMicrotasks);
  }

  /** The kind with the longest total since the last call; idle time counts as `unmarked`. Resets the totals. */
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

/** One instance per process, as there is one event loop. */
export const workMarks = new WorkMarks();
