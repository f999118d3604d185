/** One addition of a batch. */
interface Waiting {
  key: string;
  by: number;
  lifetimeMs: number;
  resolve(sum: number): void;
  reject(error: unknown): void;
}

/** Sums as decimal text, in the order of the keys; where an addition was refused, the message of the error. */
type Run = (keys: string[], parameters: number[]) => Promise<readonly string[]>;

/** More keys than this are several scripts: Redis does nothing else while one runs. */
const MAX_KEYS = 256;
const SUM = /^-?\d+$/;

/** Additions to counters that are made in one tick of the event loop are one script: a script of its own for each costs both sides several times the addition. */
export class Increments {
  readonly #run: Run;
  #waiting: Waiting[] = [];

  constructor(run: Run) {
    this.#run = run;
  }

  /** Whether nothing waits: then the next addition needs a `flush` at the end of the tick. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** The sum, once a flush has sent it. */
  add(key: string, by: number, lifetimeMs: number): Promise<number> {
    return new Promise((resolve, reject) => this.#waiting.push({ key, by, lifetimeMs, resolve, reject }));
  }

  flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let start = 0; start < waiting.length; start += MAX_KEYS) this.#send(waiting.slice(start, start + MAX_KEYS));
  }

  #send(batch: readonly Waiting[]): void {
    const keys = batch.map(({ key }) => key);
    const parameters = batch.flatMap(({ by, lifetimeMs }) => [by, lifetimeMs]);
    this.#run(keys, parameters).then(
      (answers) => {
        for (const [index, { resolve, reject }] of batch.entries()) {
          const answer = answers[index] ?? '';
          if (SUM.test(answer)) resolve(Number(answer));
          else reject(new Error(answer));
        }
      },
      (error: unknown) => {
        for (const { reject } of batch) reject(error);
      },
    );
  }
}
