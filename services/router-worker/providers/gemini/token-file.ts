import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { RereadFile } from '../reread-file.ts';

const MAX_TOKEN_CHARS = 16 * 1024;

/** A bearer token in a file that another program renews. */
export class TokenFile {
  readonly #file: RereadFile<string>;

  constructor(path: string, clock: Clock) {
    this.#file = new RereadFile(path, clock, tokenIn);
  }

  /** The last two tokens that were read, newest first. */
  get recent(): readonly string[] {
    return this.#file.recent;
  }

  /** @throws `router.provider_misconfigured` when no token could be read yet */
  current(): string {
    const token = this.#file.current();
    if (token === null) throw new SwitchyardError('router.provider_misconfigured', 'the token file of the provider has no token that can be read');
    return token;
  }
}

/** Null: empty while it is written, or characters that no header allows. */
function tokenIn(text: string): string | null {
  const token = text.slice(0, MAX_TOKEN_CHARS).trim();
  return /^[\x21-\x7e]+$/.test(token) ? token : null;
}
