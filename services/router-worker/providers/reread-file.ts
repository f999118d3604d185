import { readFileSync, statSync } from 'node:fs';
import type { Clock } from '#shared/clock.ts';

/** Between two looks at the file. */
const CHECK_EVERY_MS = 1_000;

/**
 * A small local file that another program renews. Read again when the file has changed: a few hundred bytes need no promise per request. A read that fails, or a
 * content that can't be parsed, as while it is written, leaves the last one, which may be valid for longer.
 */
export class RereadFile<Content> {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #parse: (text: string) => Content | null;
  #content: Content | null = null;
  #former: Content | null = null;
  #version = '';
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #failure: string | null = null;

  /** @param parse returns null for a content that is not to be used */
  constructor(path: string, clock: Clock, parse: (text: string) => Content | null) {
    this.#path = path;
    this.#clock = clock;
    this.#parse = parse;
  }

  /** The last two contents that were read, newest first: requests with the former may still be in flight. */
  get recent(): readonly Content[] {
    return [this.#content, this.#former].flatMap((content) => (content === null ? [] : [content]));
  }

  /** Code of the system's error when the last read failed, such as `ENOENT`; null: it did not. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Null when none could be read yet. */
  current(): Content | null {
    const nowMs = this.#clock.nowMs();
    if (this.#content === null || Math.abs(nowMs - this.#checkedAtMs) >= CHECK_EVERY_MS) {
      this.#checkedAtMs = nowMs;
      this.#refresh();
    }
    return this.#content;
  }

  #refresh(): void {
    try {
      const { mtimeMs, size, ino } = statSync(this.#path);
      this.#failure = null;
      const version = `${mtimeMs}.${size}.${ino}`;
      if (version === this.#version) return;
      const content = this.#parse(readFileSync(this.#path, 'utf8'));
      if (content === null) return;
      this.#former = this.#content;
      this.#content = content;
      this.#version = version;
    } catch (error) {
      this.#failure = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    }
  }
}
