/** What ran outside every mark. */
const UNMARKED = 'unmarked';

/** The kind of work that ran longest since the last look, and for how long in all. */
export interface LongestWork {
  kind: string;
  ms: number;
  /** The last kind that was marked; null: none was. Where `kind` is `unmarked`, what ran began behind this. */
  lastMarked: string | null;
}

/**
 * Attributes the time of the event loop to kinds of work. A mark holds until the next one, or until the callback of the event loop that set
 * it has run together with its promise continuations; a continuation behind real I/O has to be marked again. A mark costs two readings of
 * the clock and no context that follows promises (AsyncLocalStorage would add to each promise of the process).
 *
 * Kinds become labels of a metric: patterns of routes and names in the code, never a text from outside.
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
  // A microtask runs among those of the callback, and a tick that it asks for runs once they are all done.
  readonly #endBehindMicrotasks = () => process.nextTick(this.#end);

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
  }

  /** What runs from here on, in this callback of the event loop, is work of this kind. */
  mark(kind: string): void {
    this.#attribute();
    this.#kind = kind;
    this.#lastMarked = kind;
    if (this.#endsWithCallback) return;
    this.#endsWithCallback = true;
    queueMicrotask(this.#endBehindMicrotasks);
  }

  /** What took longest since the last call, idle time included under `unmarked`. Begins anew. */
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

/** Those of this process: it has one event loop, whatever runs in it. */
export const workMarks = new WorkMarks();
