import type { NamedStatement, Queryable } from '../storage/database.ts';

export interface EvaluationRow {
  hash: string;
  /** `vectors`: of texts that what customers say is compared with. `set`: what a bundle's documents have at a time. */
  kind: 'node' | 'routine' | 'policy' | 'vectors' | 'set';
  /** Null: the evaluation failed. */
  result: unknown;
}

const READ: NamedStatement = { name: 'read-evaluations', text: 'select hash, kind, result from evaluations where hash = any($1::text[])' };
const WITH_RESULT: NamedStatement = {
  name: 'evaluations-with-result',
  text: 'select hash from evaluations where hash = any($1::text[]) and result is not null',
};
const STORE: NamedStatement = {
  name: 'store-evaluation',
  text: `insert into evaluations (hash, kind, result) values ($1, $2, $3::json)
         on conflict (hash) do update set result = excluded.result, evaluated_at = now(), used_at = now() where evaluations.result is null`,
};
/** Few rows, and read some times a minute: unindexed. */
const NEWEST_SET: NamedStatement = {
  name: 'newest-evaluation-set',
  text: `select hash from evaluations where kind = 'set' and result->>'of' = $1 order by evaluated_at desc, hash limit 1`,
};
const USE: NamedStatement = { name: 'use-evaluations', text: 'update evaluations set used_at = now() where hash = any($1::text[])' };

/** What a model found out about documents, by the hash of their content. */
export interface EvaluationStore {
  /** Those that are stored, failures included. */
  read(hashes: readonly string[]): Promise<Map<string, EvaluationRow>>;
  /** Those that have a result. Reads no results, which may have megabytes. */
  withResult(hashes: readonly string[]): Promise<Set<string>>;
  /** The first result of a hash stays; a failure is replaced. */
  store(row: EvaluationRow): Promise<void>;
  /** The hash of the newest set of the documents with this key; null: there is none. */
  newestSet(of: string): Promise<string | null>;
  /** Keeps them from the sweep for another retention. */
  use(hashes: readonly string[]): Promise<void>;
}

export function evaluationStore(database: Queryable): EvaluationStore {
  return {
    async read(hashes) {
      if (hashes.length === 0) return new Map();
      const { rows } = await database.query<EvaluationRow>(READ, [hashes]);
      return new Map(rows.map((row) => [row.hash, row]));
    },
    async withResult(hashes) {
      if (hashes.length === 0) return new Set();
      const { rows } = await database.query<{ hash: string }>(WITH_RESULT, [hashes]);
      return new Set(rows.map(({ hash }) => hash));
    },
    async store({ hash, kind, result }) {
      await database.query(STORE, [hash, kind, result === null ? null : JSON.stringify(result)]);
    },
    async newestSet(of) {
      const { rows } = await database.query<{ hash: string }>(NEWEST_SET, [of]);
      return rows[0]?.hash ?? null;
    },
    async use(hashes) {
      if (hashes.length > 0) await database.query(USE, [hashes]);
    },
  };
}
