import type { NamedStatement, Queryable } from '../storage/database.ts';
import type { DocumentAddress } from './document-rows.ts';

/** A document of another platform, as it was fetched. */
export interface KeptDocument {
  /** JSON. */
  body: string;
  etag: string | null;
}

const READ: NamedStatement = {
  name: 'platform-documents-read',
  text: 'select body, etag from platform_documents where address = $1 and kind = $2 and id = $3 and version = $4',
};
const KEEP: NamedStatement = {
  name: 'platform-documents-keep',
  text: `insert into platform_documents (address, kind, id, version, body, etag) values ($1, $2, $3, $4, $5, $6)
    on conflict (address, kind, id, version) do update set body = excluded.body, etag = excluded.etag, fetched_at = now()`,
};

/** What was fetched from one platform. */
export class PlatformRows {
  readonly #database: Queryable;
  readonly #platform: string;

  constructor(database: Queryable, platform: string) {
    this.#database = database;
    this.#platform = platform;
  }

  async read({ kind, id, version }: DocumentAddress): Promise<KeptDocument | null> {
    return (await this.#database.query<KeptDocument>(READ, [this.#platform, kind, id, version])).rows[0] ?? null;
  }

  /** Several processes may fetch the same document at once: the last one stays. */
  async keep({ kind, id, version }: DocumentAddress, { body, etag }: KeptDocument): Promise<void> {
    await this.#database.query(KEEP, [this.#platform, kind, id, version, body, etag]);
  }
}
