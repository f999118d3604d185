/** `bigint` is a number and `json` is parsed on every driver; select `x::text` for raw text. */
export interface QueryResult<Row> {
  rows: Row[];
  /** Rows returned or affected. */
  rowCount: number;
}

/** Prepared once per connection: a name always has the same text. */
export interface NamedStatement {
  name: string;
  text: string;
}

export interface Queryable {
  /**
   * Runs one statement with parameters `$1`….
   * @throws the server's error, with the SQLSTATE in `code`; `service.unreachable` without a connection, or when it was lost before the reply: the
   * statement may have been executed; `service.not_ready` when too many are waiting
   */
  query<Row extends object>(statement: string | NamedStatement, parameters?: readonly unknown[]): Promise<QueryResult<Row>>;
}

export interface TransactionOptions {
  /** Replaces the driver's limit, for migrations that rebuild a table. */
  statementTimeoutMs?: number;
}

/** The port to PostgreSQL, the source of truth. SQL is written for PostgreSQL 15. */
export interface Database extends Queryable {
  /**
   * Runs `work` in one transaction. Commits when it resolves; rolls back when it throws, and when it resolves although a statement failed: then
   * rejects with that statement's error.
   * Inside, use only the given handle and await nothing but the database: the embedded driver's one connection would deadlock. Every driver throws
   * `storage.wrong_handle` there, and for a handle used after its transaction.
   */
  transaction<Result>(work: (handle: Queryable) => Promise<Result>, options?: TransactionOptions): Promise<Result>;
  /** Refuses new calls with `storage.closed`, finishes those in flight, then closes. */
  close(): Promise<void>;
}
