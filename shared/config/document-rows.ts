import { createHash } from 'node:crypto';
import type { NamedStatement, Queryable } from '../storage/database.ts';
import { canonicalJson } from './canonical-json.ts';
import type { documentFolders } from './document-kinds.ts';

export type DocumentFolder = (typeof documentFolders)[keyof typeof documentFolders];

export interface DocumentAddress {
  kind: DocumentFolder;
  id: string;
  version: number;
}

export interface PublishedVersion {
  version: number;
  /** SHA-256 of the text, in hex. */
  hash: string;
  publishedAt: Date;
}

export interface StoredDocument extends PublishedVersion {
  /** Canonical JSON. */
  body: string;
}

/** The newest version of one id, and how many there are. */
export interface ListedDocument extends PublishedVersion {
  id: string;
  versions: number;
}

const PUBLISH: NamedStatement = {
  name: 'documents-publish',
  text: `insert into documents (kind, id, version, body, hash) values ($1, $2, $3, $4, $5)
    on conflict (kind, id, version) do nothing returning version, body, hash, published_at as "publishedAt"`,
};
const READ: NamedStatement = {
  name: 'documents-read',
  text: 'select version, body, hash, published_at as "publishedAt" from documents where kind = $1 and id = $2 and version = $3',
};
const VERSIONS: NamedStatement = {
  name: 'documents-versions',
  text: `select version, hash, published_at as "publishedAt" from documents
    where kind = $1 and id = $2 and ($3::int is null or version < $3::int) order by version desc limit $4`,
};
const LIST: NamedStatement = {
  name: 'documents-list',
  text: `select distinct on (id) id, version, hash, published_at as "publishedAt", (count(*) over (partition by id))::int as versions from documents
    where kind = $1 and id > $2 and id in (select distinct id from documents where kind = $1 and id > $2 order by id limit $3)
    order by id, version desc`,
};

/** The documents that were published to this deployment. */
export class DocumentRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Stores a new version. @returns that version as it is stored, and whether it was new: another text may have been published before */
  async publish({ kind, id, version }: DocumentAddress, document: unknown): Promise<{ stored: StoredDocument; isNew: boolean; isSame: boolean }> {
    const body = canonicalJson(document);
    const hash = createHash('sha256').update(body).digest('hex');
    const { rows } = await this.#database.query<StoredDocument>(PUBLISH, [kind, id, version, body, hash]);
    const [inserted] = rows;
    if (inserted !== undefined) return { stored: inserted, isNew: true, isSame: true };
    // Rows are never deleted, so that of the conflict is there.
    const stored = await this.read({ kind, id, version });
    if (stored === null) throw new Error('a document that could not be inserted is not there');
    return { stored, isNew: false, isSame: stored.hash === hash };
  }

  async read({ kind, id, version }: DocumentAddress): Promise<StoredDocument | null> {
    const { rows } = await this.#database.query<StoredDocument>(READ, [kind, id, version]);
    return rows[0] ?? null;
  }

  /** Newest first. @param below null: from the newest */
  async versions({ kind, id }: Pick<DocumentAddress, 'kind' | 'id'>, { below, limit }: { below: number | null; limit: number }): Promise<PublishedVersion[]> {
    return (await this.#database.query<PublishedVersion>(VERSIONS, [kind, id, below, limit])).rows;
  }

  /** By id. @param after `''`: from the first */
  async list(kind: DocumentFolder, { after, limit }: { after: string; limit: number }): Promise<ListedDocument[]> {
    return (await this.#database.query<ListedDocument>(LIST, [kind, after, limit])).rows;
  }
}
