/** Rows of one statement. `bigint` columns arrive as numbers on every driver; `json` columns arrive parsed, so select `x::text` for raw text. */
export interface QueryResult<Row> {
  rows: Row[];
  /** Rows returned or affected. */
  rowCount: number;
}

/** Named statements are prepared once per connection and reused: one name always stands for one text. */
export interface NamedStatement {
  name: string;
  text: string;
}

export interface Queryable {
  /**
   * Runs one statement. Parameters are `$1`… in the text.
   * @throws the server's error, with the SQLSTATE in `code`; `service.unreachable` when there was no connection, or when it was lost
   * before the answer, which leaves open whether the statement was carried out; `service.not_ready` when too many wait already
   */
  query<Row extends object>(statement: string | NamedStatement, parameters?: readonly unknown[]): Promise<QueryResult<Row>>;
}

export interface TransactionOptions {
  /** How long one statement of the transaction may take, in place of the driver's own limit: for migrations, which may rebuild a table. */
  statementTimeoutMs?: number;
}

/** The house's book of truth: PostgreSQL, through its own wire types. SQL is written for PostgreSQL 15. */
export interface Database extends Queryable {
  /**
   * Runs `work` in one transaction and commits when it resolves; rolls back when it throws, and also when it resolves although a
   * statement failed: the promise then rejects with that statement's error.
   * Inside, only the handle given is used and nothing but the database is awaited: on the embedded driver, which has one
   * connection, anything else would wait for itself for ever. So every driver throws `storage.wrong_handle` there, and also for a
   * handle that is used after its transaction.
   */
  transaction<Result>(work: (handle: Queryable) => Promise<Result>, options?: TransactionOptions): Promise<Result>;
  /** Refuses what comes from now on with `storage.closed`, finishes what is in hand, then closes. */
  close(): Promise<void>;
}
