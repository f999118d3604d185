import type { NamedStatement, Queryable } from '../storage/database.ts';

/** How often an agent's gateway renews its registration. */
export const RENEW_EVERY_MS = 60_000;
/** Two renewals may fail. */
const LIVE_SECONDS = 180;

/** An agent as it registers itself. */
export interface AgentEntry {
  id: string;
  name: string;
  /** The manifest's label. */
  version: string;
  url: string;
}

export interface RegisteredAgent extends AgentEntry {
  registeredAt: Date;
  renewedAt: Date;
  /** Whether it was renewed in the last three minutes. */
  isLive: boolean;
}

const COLUMNS = `id, name, version, url, registered_at as "registeredAt", renewed_at as "renewedAt",
  renewed_at > now() - interval '${LIVE_SECONDS} seconds' as "isLive"`;

const REGISTER: NamedStatement = {
  name: 'agents-register',
  text: `with expired as (delete from agents where renewed_at < now() - interval '1 day' and id <> $1)
    insert into agents (id, name, version, url) select $1, $2, $3, $4
      where exists (select 1 from agents where id = $1) or (select count(*) from agents where renewed_at >= now() - interval '1 day') < $5
    on conflict (id) do update set name = excluded.name, version = excluded.version, url = excluded.url, renewed_at = now()
    returning ${COLUMNS}`,
};
const READ: NamedStatement = { name: 'agents-read', text: `select ${COLUMNS} from agents where id = $1` };
const LIST: NamedStatement = { name: 'agents-list', text: `select ${COLUMNS} from agents where id > $1 order by id limit $2` };

/** The agents that are registered at this deployment. */
export class AgentRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Registers or renews; the last one of an id counts. @returns null when there are `most` others already */
  async register({ id, name, version, url }: AgentEntry, most: number): Promise<RegisteredAgent | null> {
    const { rows } = await this.#database.query<RegisteredAgent>(REGISTER, [id, name, version, url, most]);
    return rows[0] ?? null;
  }

  async read(id: string): Promise<RegisteredAgent | null> {
    const { rows } = await this.#database.query<RegisteredAgent>(READ, [id]);
    return rows[0] ?? null;
  }

  /** By id. @param after `''`: from the first */
  async list({ after, limit }: { after: string; limit: number }): Promise<RegisteredAgent[]> {
    return (await this.#database.query<RegisteredAgent>(LIST, [after, limit])).rows;
  }
}
