import { isCommit } from '#actors/store/sql/commit-statement.ts';
import type { Database } from '#shared/storage/database.ts';

/**
 * Faults of the next commits: the connection breaks before or after the statement was executed, or long before it is (`late`); the host dies
 * there, or is paused there until it is woken.
 */
export type CommitFault = 'before' | 'after' | 'late' | 'die-before' | 'die-after' | 'sleep';

/** After the host's first check of the commit's outcome, about when it retries. */
const LATE_MS = 55;

/** Fault injection in one host's database connection: cut it, delay it, lose single commits. */
export class FaultyLink {
  readonly #faults: CommitFault[];
  readonly #gate = new Gate();
  readonly #late = new Set<Promise<unknown>>();
  #isCut = false;
  #isRefused = false;
  #isSnapshotRequested = false;

  constructor(faults: CommitFault[]) {
    this.#faults = faults;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  /** Whether the host has sent a read of snapshots, which it does for each command of a session that it does not know. */
  get isSnapshotRequested(): boolean {
    return this.#isSnapshotRequested;
  }

  cut(): void {
    this.#isCut = true;
  }

  mend(): void {
    this.#isCut = false;
  }

  /** All statements fail, with an error that is not transient. */
  refuse(): void {
    this.#isRefused = true;
  }

  /** Resolves when every delayed statement was executed. */
  async settled(): Promise<void> {
    await Promise.all(this.#late);
  }

  pause(): void {
    this.#gate.shut();
  }

  wake(): void {
    this.#gate.open();
  }

  over(database: Database): Database {
    return {
      transaction: async (work) => {
        await this.#pass();
        return database.transaction(work);
      },
      close: () => database.close(),
      query: async (statement, parameters) => {
        this.#isSnapshotRequested ||= / from sessions\b/.test(typeof statement === 'string' ? statement : statement.text);
        await this.#pass();
        const fault = isCommit(statement) ? this.#faults.shift() : undefined;
        if (fault === 'sleep') {
          this.pause();
          await this.#pass();
        }
        if (fault === 'late') this.#executeLate(() => database.query(statement, parameters));
        if (fault === 'die-before') this.cut();
        if (fault === 'before' || fault === 'late' || fault === 'die-before') throw lost();
        const result = await database.query<never>(statement, parameters);
        if (fault === 'die-after') this.cut();
        if (fault === 'after' || fault === 'die-after') throw lost();
        return result;
      },
    };
  }

  /** Like a server that executes a statement after its connection broke: meanwhile the host checks, finds nothing, and retries. */
  #executeLate(statement: () => Promise<unknown>): void {
    const late: Promise<unknown> = new Promise((resolve) => setTimeout(resolve, LATE_MS))
      .then(statement)
      .catch(() => {})
      .finally(() => this.#late.delete(late));
    this.#late.add(late);
  }

  async #pass(): Promise<void> {
    await this.#gate.pass();
    if (this.#isRefused) throw new Error('the host is gone');
    if (this.#isCut) throw lost();
  }
}

function lost(): Error {
  return Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
}

/** Callers wait while it is shut. */
export class Gate {
  #held: { released: Promise<void>; release(): void } | null = null;

  shut(): void {
    // Earlier callers wait on the held promise: a second must not replace it.
    if (this.#held !== null) return;
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    this.#held = { released, release };
  }

  open(): void {
    this.#held?.release();
    this.#held = null;
  }

  async pass(): Promise<void> {
    await this.#held?.released;
  }
}
