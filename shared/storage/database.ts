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
  /** Runs one statement. Parameters are `$1`… in the text. @throws the driver's error, with the SQLSTATE in `code`. */
  query<Row extends object>(statement: string | NamedStatement, parameters?: readonly unknown[]): Promise<QueryResult<Row>>;
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
  transaction<Result>(work: (handle: Queryable) => Promise<Result>): Promise<Result>;
  /** Refuses what comes from now on with `storage.closed`, finishes what is in hand, then closes. */
  close(): Promise<void>;
}
