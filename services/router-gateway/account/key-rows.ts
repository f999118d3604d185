import { type KeySpend, windowsAt } from '#shared/credit/spend-windows.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

/** A row of `router_keys`, without those of the file. Amounts are billionths of a US dollar. */
export interface KeyRow {
  id: string;
  hash: string;
  name: string;
  label: string;
  isManagement: boolean;
  disabled: boolean;
  limitNano: number | null;
  limitReset: CallerKey['limitReset'];
  includeByokInLimit: boolean;
  expiresAt: Date | null;
  ownerEmail: string | null;
  creatorUserId: string | null;
  requestsPerMinute: number | null;
  tokensPerMinute: number | null;
  callsAtOnce: number | null;
  createdAt: Date;
  updatedAt: Date | null;
  /** Since when it is known to be exposed. Null: it is not, or it was enabled again since. */
  exposedAt: Date | null;
  /** Noted last. */
  exposedWhere: string | null;
}

export type NewKeyRow = Omit<KeyRow, 'isManagement' | 'createdAt' | 'updatedAt' | 'exposedAt' | 'exposedWhere'>;
/** Absent: unchanged. */
export type KeyChanges = Partial<Pick<KeyRow, keyof typeof changeable>>;

export interface KeyWithSpend {
  key: KeyRow;
  /** Null before the first call. */
  spend: KeySpend | null;
}

interface ExposedKey extends KeyWithSpend {
  isMailQueued: boolean;
}

/** Columns that PATCH may change, and their types. */
const changeable = {
  name: ['name', 'text'],
  disabled: ['disabled', 'boolean'],
  limitNano: ['limit_nano', 'bigint'],
  limitReset: ['limit_reset', 'text'],
  includeByokInLimit: ['include_byok_in_limit', 'boolean'],
  expiresAt: ['expires_at', 'timestamptz'],
  ownerEmail: ['owner_email', 'text'],
  requestsPerMinute: ['requests_per_minute', 'bigint'],
  tokensPerMinute: ['tokens_per_minute', 'bigint'],
  callsAtOnce: ['calls_at_once', 'bigint'],
} as const;
const changeableFields = Object.keys(changeable) as (keyof typeof changeable)[];

/** The rows of keys that are made over HTTP. */
export class KeyRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** @param madeBy by a management key, or approved in a browser */
  async insert(row: NewKeyRow, madeBy: 'management' | 'oauth'): Promise<KeyRow> {
    const { id, hash, label, creatorUserId } = row;
    const values = changeableFields.map((field) => row[field]);
    const { rows } = await this.#database.query<KeyRow>(INSERT, [id, hash, label, creatorUserId, madeBy, ...values]);
    if (rows[0] === undefined) throw new Error('the inserted key was not returned');
    return rows[0];
  }

  async byHash(hash: string): Promise<KeyWithSpend | null> {
    const { rows } = await this.#database.query<JoinedRow>(SELECT_BY_HASH, [hash]);
    return rows[0] === undefined ? null : withSpend(rows[0]);
  }

  /** Newest first. */
  async page({ withDisabled, offset, limit }: { withDisabled: boolean; offset: number; limit: number }): Promise<KeyWithSpend[]> {
    const { rows } = await this.#database.query<JoinedRow>(SELECT_PAGE, [withDisabled, limit, offset]);
    return rows.map(withSpend);
  }

  /** Enabling a key ends its exposure. Null: there is no such key. */
  async change(hash: string, changes: KeyChanges): Promise<KeyWithSpend | null> {
    const given = changeableFields.filter((field) => changes[field] !== undefined);
    const { rows } = await this.#database.query<JoinedRow>(UPDATE, [hash, given, ...changeableFields.map((field) => changes[field] ?? null)]);
    return rows[0] === undefined ? null : withSpend(rows[0]);
  }

  /**
   * Notes that a key is exposed, and queues a mail to its owner: once per exposure and place, and never more than `maxMails` per exposure. An exposure lasts
   * until the key is enabled.
   * @returns null: there is no such key; `isMailQueued` is also false for a repeat, and without an address
   */
  async expose(hash: string, noted: { where: string; disable: boolean; mailId: string; maxMails: number }): Promise<ExposedKey | null> {
    const { where, disable, mailId, maxMails } = noted;
    const { rows } = await this.#database.query<JoinedRow & { mails: number }>(EXPOSE, [hash, where, disable, mailId, maxMails]);
    if (rows[0] === undefined) return null;
    const { mails, ...row } = rows[0];
    return { ...withSpend(row), isMailQueued: mails > 0 };
  }

  /** What it has spent stays, and so do its generations. @returns false: there is no such key */
  async remove(hash: string): Promise<boolean> {
    const { rowCount } = await this.#database.query(DELETE, [hash]);
    return rowCount > 0;
  }

  /** What keys with a limit may still spend together, in billionths of a US dollar, without those that are disabled or expired. */
  async remainingNano(nowMs: number): Promise<number> {
    const { day, week, month } = windowsAt(nowMs);
    const { rows } = await this.#database.query<{ remaining: number }>(SELECT_REMAINING, [day, week, month, new Date(nowMs)]);
    return rows[0]?.remaining ?? 0;
  }
}

type JoinedRow = KeyRow & { [Field in keyof KeySpend]: KeySpend[Field] | null };

function withSpend(row: JoinedRow): KeyWithSpend {
  const { totalNano, day, dayNano, week, weekNano, month, monthNano, reservedNano, ...key } = row;
  // All of them are null, or none.
  const spend = { totalNano, day, dayNano, week, weekNano, month, monthNano, reservedNano };
  return { key, spend: day === null ? null : (spend as KeySpend) };
}

const KEY = `k.id, k.hash, k.label, k.management as "isManagement", k.creator_user_id as "creatorUserId", k.created_at as "createdAt", k.updated_at as "updatedAt",
  k.exposed_at as "exposedAt", k.exposed_where as "exposedWhere",
  ${changeableFields.map((field) => `k.${changeable[field][0]} as "${field}"`).join(', ')}`;

// float8: exact up to 9 million USD, and never refused.
const SPEND = `s.total_nano::float8 as "totalNano", s.day::text as day, s.day_nano::float8 as "dayNano", s.week::text as week, s.week_nano::float8 as "weekNano",
  s.month::text as month, s.month_nano::float8 as "monthNano", s.reserved_nano::float8 as "reservedNano"`;

const INSERT: NamedStatement = {
  name: 'router-gateway-insert-key',
  text: `insert into router_keys as k (id, hash, label, creator_user_id, made_by, ${changeableFields.map((field) => changeable[field][0]).join(', ')})
    values ($1, $2, $3, $4, $5, ${changeableFields.map((_, at) => `$${at + 6}`).join(', ')}) returning ${KEY}`,
};

const SELECT_BY_HASH: NamedStatement = {
  name: 'router-gateway-key',
  text: `select ${KEY}, ${SPEND} from router_keys k left join key_spend s on s.key_id = k.id where k.hash = $1`,
};

const SELECT_PAGE: NamedStatement = {
  name: 'router-gateway-keys',
  text: `select ${KEY}, ${SPEND} from router_keys k left join key_spend s on s.key_id = k.id where $1::boolean or not k.disabled
    order by k.created_at desc, k.id limit $2::int offset $3::int`,
};

const IS_ENABLED = `'disabled' = any($2::text[]) and not $${changeableFields.indexOf('disabled') + 3}::boolean`;

const UPDATE: NamedStatement = {
  name: 'router-gateway-change-key',
  // A null is a value, so the fields that are given are named.
  text: `with changed as (
      update router_keys set updated_at = now(), ${['exposed_at', 'exposed_where'].map((column) => `${column} = case when ${IS_ENABLED} then null else ${column} end`).join(', ')},
        ${changeableFields.map((field, at) => setting(field, at + 3)).join(', ')}
      where hash = $1 returning *)
    select ${KEY}, ${SPEND} from changed k left join key_spend s on s.key_id = k.id`,
};

function setting(field: keyof typeof changeable, parameter: number): string {
  const [column, type] = changeable[field];
  return `${column} = case when '${field}' = any($2::text[]) then $${parameter}::${type} else ${column} end`;
}

const EXPOSE: NamedStatement = {
  name: 'router-gateway-expose-key',
  text: `with exposed as (
      update router_keys set updated_at = now(), disabled = disabled or $3::boolean, exposed_at = coalesce(exposed_at, now()), exposed_where = $2
      where hash = $1 returning *
    ), mailed as (
      insert into mails (id, kind, recipient, key_id, key_name, key_label, exposed_at, exposed_where)
      select $4, 'key-exposed', owner_email, id, name, label, exposed_at, exposed_where from exposed
      where owner_email is not null and (select count(*) from mails where key_id = exposed.id and exposed_at = exposed.exposed_at) < $5::int
      on conflict (key_id, exposed_at, exposed_where) do nothing returning 1
    )
    select ${KEY}, ${SPEND}, (select count(*) from mailed)::int as mails from exposed k left join key_spend s on s.key_id = k.id`,
};

const DELETE: NamedStatement = { name: 'router-gateway-delete-key', text: 'delete from router_keys where hash = $1' };

const SELECT_REMAINING: NamedStatement = {
  name: 'router-gateway-remaining-credit',
  text: `select coalesce(sum(greatest(0, k.limit_nano - coalesce(s.reserved_nano, 0) - coalesce(case k.limit_reset
        when 'daily' then case when s.day >= $1::date then s.day_nano end
        when 'weekly' then case when s.week >= $2::date then s.week_nano end
        when 'monthly' then case when s.month >= $3::date then s.month_nano end
        else s.total_nano end, 0))), 0)::float8 as remaining
    from router_keys k left join key_spend s on s.key_id = k.id
    where k.limit_nano is not null and not k.disabled and (k.expires_at is null or k.expires_at > $4::timestamptz)`,
};
