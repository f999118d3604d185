import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { ChallengeMethod } from './code-challenge.ts';
import type { KeyRow } from './key-rows.ts';

/** A row of `oauth_codes`: an approval that waits for its exchange. */
export interface CodeRow extends Pick<KeyRow, 'name' | 'limitNano' | 'limitReset'> {
  /** SHA-256 of the code in hex. */
  hash: string;
  /** Null: the code alone is exchanged. */
  challenge: string | null;
  challengeMethod: ChallengeMethod | null;
  /** Of the key to be made; null: never. */
  keyExpiresAt: Date | null;
  expiresAt: Date;
}

export class CodeRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Also removes codes that have expired before `forgetBefore`, so that codes which are never exchanged do not pile up. */
  async insert(row: CodeRow, forgetBefore: Date): Promise<void> {
    const { hash, challenge, challengeMethod, name, limitNano, limitReset, keyExpiresAt, expiresAt } = row;
    await this.#database.query(INSERT, [hash, challenge, challengeMethod, name, limitNano, limitReset, keyExpiresAt, expiresAt, forgetBefore]);
  }

  /** Null: there is no such code, or it has been exchanged. */
  async find(hash: string): Promise<CodeRow | null> {
    const { rows } = await this.#database.query<CodeRow>(SELECT, [hash]);
    return rows[0] ?? null;
  }

  /** Of any number of exchanges at once, one gets true. */
  async take(hash: string): Promise<boolean> {
    const { rowCount } = await this.#database.query(DELETE, [hash]);
    return rowCount > 0;
  }
}

const INSERT: NamedStatement = {
  name: 'router-gateway-insert-code',
  text: `with expired as (delete from oauth_codes where expires_at < $9::timestamptz)
    insert into oauth_codes (hash, challenge, challenge_method, name, limit_nano, limit_reset, key_expires_at, expires_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8)`,
};

const SELECT: NamedStatement = {
  name: 'router-gateway-code',
  text: `select hash, challenge, challenge_method as "challengeMethod", name, limit_nano as "limitNano", limit_reset as "limitReset",
    key_expires_at as "keyExpiresAt", expires_at as "expiresAt" from oauth_codes where hash = $1`,
};

const DELETE: NamedStatement = { name: 'router-gateway-take-code', text: 'delete from oauth_codes where hash = $1' };
