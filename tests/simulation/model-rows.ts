/** A row as a driver returns it, except that JSON stays text until it is read. */
export type Row = Record<string, unknown>;

/** The tables that the runtime uses, each by the key of most queries; a table without a unique key holds lists. */
export class ModelTables {
  readonly meta = new Map<string, Row>();
  readonly parts = new Map<number, Row>();
  readonly hosts = new Map<string, Row>();
  readonly bundles = new Map<string, Row>();
  readonly sessions = new Map<string, Row>();
  readonly customers = new Map<string, Row>();
  readonly variableValues: Row[] = [];
  sessionLabels: Row[] = [];
  /** By session, then by offset. */
  readonly events = new Map<string, Map<number, Row>>();
  /** By session and command. */
  readonly seen = new Map<string, Row>();
  readonly effects = new Map<string, Row[]>();
  /** By partition and key. */
  readonly timers = new Map<string, Row>();
  readonly runs = new Map<string, Row>();
  /** By run. */
  readonly steps = new Map<string, Row[]>();
  /** By turn. */
  readonly turnSteps = new Map<string, Row[]>();
  /** By session. */
  readonly agentStates = new Map<string, Row[]>();
  readonly runCalls: Row[] = [];
  readonly deliveries = new Map<string, Row[]>();
  readonly webhookDeliveries = new Map<string, Row>();
  readonly claims = new Map<string, Row>();
  readonly deadLetters: Row[] = [];
  readonly toolLists = new Map<string, Row>();
  readonly toolServers: Row[] = [];

  /** All rows of all tables, by the tables' names in the database. */
  dump(): Record<string, Row[]> {
    return {
      meta: [...this.meta.values()],
      parts: [...this.parts.values()],
      hosts: [...this.hosts.values()],
      sessions: [...this.sessions.values()],
      customers: [...this.customers.values()],
      session_labels: this.sessionLabels,
      events: [...this.events.values()].flatMap((rows) => [...rows.values()]),
      seen: [...this.seen.values()],
      effects: [...this.effects.values()].flat(),
      timers: [...this.timers.values()],
      runs: [...this.runs.values()],
      steps: [...this.steps.values()].flat(),
      turn_steps: [...this.turnSteps.values()].flat(),
      agent_states: [...this.agentStates.values()].flat(),
      run_calls: this.runCalls,
      deliveries: [...this.deliveries.values()].flat(),
      webhook_deliveries: [...this.webhookDeliveries.values()],
      claims: [...this.claims.values()],
      dead_letters: this.deadLetters,
      tool_lists: [...this.toolLists.values()],
      tool_servers: this.toolServers,
    };
  }
}

const JSON_COLUMNS: ReadonlySet<string> = new Set([
  ...['snapshot', 'record', 'body', 'answer', 'inputs', 'command', 'input', 'metadata', 'output', 'error', 'message', 'host_allowlist', 'tools', 'outcome'],
]);
/** Tables whose `state` is JSON, and not a word. */
const JSON_STATES: ReadonlySet<string> = new Set(['agent_states']);
/** Tables whose body is bytes: a callback as it is posted, or an unreadable message. */
const TEXT_BODIES: ReadonlySet<string> = new Set(['deliveries', 'dead_letters']);

/** The row as a driver returns it. @param columns those that the statement names */
export function read(row: Row, columns: readonly string[], table = ''): Row {
  const found: Row = {};
  for (const column of columns) found[column] = cellOf(row, column, table);
  return found;
}

export function readAll(row: Row, table: string): Row {
  return read(row, Object.keys(row), table);
}

function cellOf(row: Row, column: string, table: string): unknown {
  const value = row[column] ?? null;
  const isJson = column === 'state' ? JSON_STATES.has(table) : JSON_COLUMNS.has(column) && !(column === 'body' && TEXT_BODIES.has(table));
  // A new object each time, so that no reader can change a stored row.
  return isJson && typeof value === 'string' ? JSON.parse(value) : value;
}

/** An error with a SQLSTATE. */
export function sqlError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

export function list(map: Map<string, Row[]>, key: string): Row[] {
  const found = map.get(key);
  if (found !== undefined) return found;
  const fresh: Row[] = [];
  map.set(key, fresh);
  return fresh;
}
