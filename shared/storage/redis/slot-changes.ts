/** One acquisition, or one release, of a batch. */
interface Waiting<Answer> {
  owner: string;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Under one limit and time to live. */
interface Acquisitions {
  limit: number;
  lifetimeMs: number;
  owners: Set<string>;
  waiting: Waiting<boolean>[];
}

/** Of one key. */
interface Changes {
  releases: Waiting<void>[];
  acquisitions: Acquisitions[];
}

interface Commands {
  /** @returns for each owner 1 when it has a slot, else 0 */
  acquire(key: string, limit: number, lifetimeMs: number, owners: readonly string[]): Promise<readonly number[]>;
  release(key: string, owners: readonly string[]): Promise<unknown>;
}

/** More owners than this are several commands: Redis does nothing else while one runs. */
export const MAX_OWNERS = 500;

/**
 * Slots that are acquired in one tick of the event loop are one command for each key, and those that are released another: a command of its own for each call
 * costs both sides several times the change. Releases go first, unless the owner acquires a slot in the same tick before it releases it.
 */
export class SlotChanges {
  readonly #commands: Commands;
  readonly #changes = new Map<string, Changes>();

  constructor(commands: Commands) {
    this.#commands = commands;
  }

  /** Whether nothing waits: then the next change needs a `flush` at the end of the tick. */
  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** Whether the owner has a slot, once a flush has sent it. */
  acquire(key: string, owner: string, limit: number, lifetimeMs: number): Promise<boolean> {
    const { acquisitions } = this.#changesOf(key);
    let alike = acquisitions.find((one) => one.limit === limit && one.lifetimeMs === lifetimeMs);
    if (alike === undefined) {
      alike = { limit, lifetimeMs, owners: new Set(), waiting: [] };
      acquisitions.push(alike);
    }
    const { owners, waiting } = alike;
    owners.add(owner);
    return new Promise((resolve, reject) => waiting.push({ owner, resolve, reject }));
  }

  release(key: string, owner: string): Promise<void> {
    if (this.#changesOf(key).acquisitions.some(({ owners }) => owners.has(owner))) this.flush();
    const { releases } = this.#changesOf(key);
    return new Promise((resolve, reject) => releases.push({ owner, resolve, reject }));
  }

  flush(): void {
    const changes = [...this.#changes];
    this.#changes.clear();
    for (const [key, { releases, acquisitions }] of changes) {
      for (const some of inParts(releases)) settle(some, this.#commands.release(key, ownersOf(some)), ({ resolve }) => resolve());
      for (const { limit, lifetimeMs, waiting } of acquisitions) {
        for (const some of inParts(waiting)) {
          const answered = this.#commands.acquire(key, limit, lifetimeMs, ownersOf(some));
          settle(some, answered, ({ resolve }, index, answers) => resolve(answers[index] === 1));
        }
      }
    }
  }

  #changesOf(key: string): Changes {
    let changes = this.#changes.get(key);
    if (changes === undefined) {
      changes = { releases: [], acquisitions: [] };
      this.#changes.set(key, changes);
    }
    return changes;
  }
}

function settle<Answer, Answers>(
  waiting: readonly Waiting<Answer>[],
  answered: Promise<Answers>,
  resolve: (one: Waiting<Answer>, index: number, answers: Answers) => void,
): void {
  answered.then(
    (answers) => {
      for (const [index, one] of waiting.entries()) resolve(one, index, answers);
    },
    (error: unknown) => {
      for (const { reject } of waiting) reject(error);
    },
  );
}

function inParts<One>(waiting: readonly One[]): (readonly One[])[] {
  const parts: (readonly One[])[] = [];
  for (let start = 0; start < waiting.length; start += MAX_OWNERS) parts.push(waiting.slice(start, start + MAX_OWNERS));
  return parts;
}

function ownersOf(waiting: readonly Waiting<never>[]): string[] {
  return waiting.map(({ owner }) => owner);
}
