/** One addition of a batch. */
interface Waiting {
  by: number;
  resolve(sum: number): void;
  reject(error: unknown): void;
}

/** Additions to one counter. */
interface Addition {
  key: string;
  by: number;
  lifetimeMs: number;
  waiting: Waiting[];
}

/** Sums as decimal text, in the order of the keys; where an addition was refused, the message of the error. */
type Run = (keys: string[], parameters: number[]) => Promise<readonly string[]>;

/** More keys than this are several scripts: Redis does nothing else while one runs. */
const MAX_KEYS = 256;
const SUM = /^-?\d+$/;

/**
 * Additions to counters that are made in one tick of the event loop are one script, and those to one counter are one addition, which is refused as a whole: a
 * script of its own for each costs both sides several times the addition.
 */
export class Increments {
  readonly #run: Run;
  #additions: Addition[] = [];
  /** The last of each key. */
  readonly #open = new Map<string, Addition>();

  constructor(run: Run) {
    this.#run = run;
  }

  /** Whether nothing waits: then the next addition needs a `flush` at the end of the tick. */
  get isEmpty(): boolean {
    return this.#additions.length === 0;
  }

  /** The sum, once a flush has sent it. */
  add(key: string, by: number, lifetimeMs: number): Promise<number> {
    let addition = this.#open.get(key);
    // Beyond, a number would lose the last digits.
    if (addition === undefined || !Number.isSafeInteger(addition.by + by)) {
      addition = { key, by: 0, lifetimeMs, waiting: [] };
      this.#additions.push(addition);
      this.#open.set(key, addition);
    }
    addition.by += by;
    const { waiting } = addition;
    return new Promise((resolve, reject) => waiting.push({ by, resolve, reject }));
  }

  flush(): void {
    const additions = this.#additions;
    this.#additions = [];
    this.#open.clear();
    for (let start = 0; start < additions.length; start += MAX_KEYS) this.#send(additions.slice(start, start + MAX_KEYS));
  }

  #send(additions: readonly Addition[]): void {
    const keys = additions.map(({ key }) => key);
    const parameters = additions.flatMap(({ by, lifetimeMs }) => [by, lifetimeMs]);
    this.#run(keys, parameters).then(
      (answers) => {
        for (const [index, { by, waiting }] of additions.entries()) settle(waiting, by, answers[index] ?? '');
      },
      (error: unknown) => {
        for (const { waiting } of additions) for (const { reject } of waiting) reject(error);
      },
    );
  }
}

/** Each has the sum that it would have if they were made one by one. */
function settle(waiting: readonly Waiting[], all: number, answer: string): void {
  if (!SUM.test(answer)) {
    for (const { reject } of waiting) reject(new Error(answer));
    return;
  }
  let sum = Number(answer) - all;
  for (const { by, resolve } of waiting) {
    sum += by;
    resolve(sum);
  }
}
