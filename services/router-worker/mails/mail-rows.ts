import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** A row of `mails` whose next attempt is this process's. */
export interface MailRow {
  id: string;
  recipient: string;
  keyId: string;
  keyName: string;
  keyLabel: string;
  exposedAt: Date;
  exposedWhere: string;
  createdAt: Date;
  /** This one included. */
  attempts: number;
}

/** The queue of mails. Any number of processes may use it. */
export class MailRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Mails that are due, oldest first. Each is this process's for the time of the lease; then it is due again. */
  async claim(limit: number, leaseMs: number): Promise<MailRow[]> {
    return (await this.#database.query<MailRow>(CLAIM, [limit, leaseMs])).rows;
  }

  async sent({ id }: MailRow): Promise<void> {
    await this.#database.query(SENT, [id]);
  }

  /** No effect when another process has claimed it since. @param retryMs null: it is given up */
  async failed({ id, attempts }: MailRow, error: string, retryMs: number | null): Promise<void> {
    await this.#database.query(FAILED, [id, attempts, error, retryMs]);
  }

  async waiting(): Promise<number> {
    return (await this.#database.query<{ mails: number }>(COUNT)).rows[0]?.mails ?? 0;
  }

  /** Deletes mails that were sent, or given up, longer ago. */
  async sweep(keptMs: number, limit: number): Promise<void> {
    await this.#database.query(SWEEP, [keptMs, limit]);
  }
}

const OPEN = 'sent_at is null and given_up_at is null';
const later = (parameter: number) => `now() + $${parameter}::float8 * interval '1 millisecond'`;

const CLAIM: NamedStatement = {
  name: 'mails-claim',
  text: `update mails set attempts = attempts + 1, next_attempt_at = ${later(2)}
    where id in (select id from mails where ${OPEN} and next_attempt_at <= now() order by next_attempt_at limit $1::int for update skip locked)
    returning id, recipient, key_id as "keyId", key_name as "keyName", key_label as "keyLabel", exposed_at as "exposedAt", exposed_where as "exposedWhere",
      created_at as "createdAt", attempts`,
};

/** Whatever another process has found out meanwhile: the server has accepted it. */
const SENT: NamedStatement = {
  name: 'mails-sent',
  text: 'update mails set sent_at = now(), given_up_at = null, last_error = null where id = $1 and sent_at is null',
};

const FAILED: NamedStatement = {
  name: 'mails-failed',
  text: `update mails set last_error = $3, next_attempt_at = coalesce(${later(4)}, next_attempt_at), given_up_at = case when $4::float8 is null then now() end
    where id = $1 and attempts = $2::int and ${OPEN}`,
};

const COUNT: NamedStatement = { name: 'mails-waiting', text: `select count(*)::int as mails from mails where ${OPEN}` };

const SWEEP: NamedStatement = {
  name: 'mails-sweep',
  text: `delete from mails where id in (
    select id from mails where (sent_at is not null or given_up_at is not null) and coalesce(sent_at, given_up_at) < now() - $1::float8 * interval '1 millisecond'
    limit $2::int)`,
};
