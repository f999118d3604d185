import { readFileSync, statSync } from 'node:fs';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** Between two looks at the file. */
const CHECK_EVERY_MS = 1_000;
const MAX_TOKEN_CHARS = 16 * 1024;

/**
 * A bearer token in a file that another program renews. Read again when the file has changed; a few hundred bytes of a local file need no promise per request.
 * A read that fails leaves the last token, which may be valid for longer.
 */
export class TokenFile {
  readonly #path: string;
  readonly #clock: Clock;
  #token: string | null = null;
  #version = '';
  #checkedAtMs = Number.NEGATIVE_INFINITY;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** The last token that was read; null: none yet. */
  get last(): string | null {
    return this.#token;
  }

  /** @throws `router.provider_misconfigured` when no token could be read yet */
  current(): string {
    const nowMs = this.#clock.nowMs();
    if (this.#token === null || Math.abs(nowMs - this.#checkedAtMs) >= CHECK_EVERY_MS) {
      this.#checkedAtMs = nowMs;
      this.#refresh();
    }
    if (this.#token === null) throw new SwitchyardError('router.provider_misconfigured', 'the token file of the provider has no token that can be read');
    return this.#token;
  }

  #refresh(): void {
    try {
      const { mtimeMs, size, ino } = statSync(this.#path);
      const version = `${mtimeMs}.${size}.${ino}`;
      if (version === this.#version) return;
      const token = readFileSync(this.#path, 'utf8').slice(0, MAX_TOKEN_CHARS).trim();
      // Empty while it is written; a header allows no other characters.
      if (!/^[\x21-\x7e]+$/.test(token)) return;
      this.#token = token;
      this.#version = version;
    } catch {
      // As with an unreadable token.
    }
  }
}
