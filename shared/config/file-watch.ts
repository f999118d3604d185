import { stat } from 'node:fs/promises';

/** Twice this, at most, from a change to its notice. */
const POLL_MS = 400;

interface FileWatchOptions {
  /** Of the content that is known already; null: none is. */
  known: string | null;
  pollMs?: number;
}

/**
 * Notices that another content may be at a path, once that has not changed for one interval: a file that is being written is left until it is whole. Polls what
 * the path leads to, so that a rename over the file, a new target of any symlink on the way (as Kubernetes updates mounted files) and network file systems are
 * all noticed, which notifications of the kernel do not give.
 */
export class FileWatch {
  readonly #path: string;
  readonly #pollMs: number;
  readonly #onChange: () => Promise<void>;
  #known: string | null;
  #last: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> = Promise.resolve();
  #isStopped = false;

  /** @param onChange never rejects; the next look is after it */
  constructor(path: string, onChange: () => Promise<void>, { known, pollMs = POLL_MS }: FileWatchOptions) {
    this.#path = path;
    this.#onChange = onChange;
    this.#known = known;
    this.#pollMs = pollMs;
    this.#schedule();
  }

  /** What is there now was read for another reason. @param signature as taken before it was read */
  setKnown(signature: string): void {
    this.#known = signature;
  }

  /** Waits for a look in progress. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#polling;
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#polling = this.#poll().finally(() => this.#schedule());
    }, this.#pollMs).unref();
  }

  async #poll(): Promise<void> {
    const found = await signatureOf(this.#path);
    const isSettled = found === this.#last;
    this.#last = found;
    if (!isSettled || found === this.#known) return;
    this.#known = found;
    await this.#onChange();
  }
}

/** What changes with each write of a file, and with each replacement. Of a file that can't be read: the reason. */
export async function signatureOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(':');
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  }
}
