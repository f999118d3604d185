import { SwitchyardError } from '../errors/switchyard-error.ts';

/** A digit first, or one of few letters. Excludes system codes such as `EPIPE`. */
const SQL_STATE = /^(\d[0-9A-Z]|F0|HV|P0|XX)[0-9A-Z]{3}$/;

/** Null for errors that are not the server's, such as a lost connection. */
export function sqlStateOf(error: unknown): string | null {
  const code = codeOf(error);
  return code !== null && SQL_STATE.test(code) ? code : null;
}

/** Connection, rollback (deadlock, serialization), resources, operator intervention, system. */
const TRANSIENT_CLASS = /^(08|40|53|57|58)/;

const LOCK_NOT_AVAILABLE = '55P03';

const TRANSIENT_STATES: ReadonlySet<string> = new Set([
  LOCK_NOT_AVAILABLE,
  '55006', // object_in_use
  '25006', // read_only_sql_transaction: after a failover the primary is elsewhere
  '25P03', // idle_in_transaction_session_timeout; the connection is closed too
  '25P04', // transaction_timeout
]);

/** A statement waited longer for a lock than the driver lets it. It was not executed. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === LOCK_NOT_AVAILABLE;
}

/** The database's queue is full, or the connection could not be made or was lost. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(['service.not_ready', 'service.unreachable']);

/** Messages of `pg` for connection errors that have no code. */
const TRANSIENT_MESSAGES = /^Connection terminated|^timeout e(xpired|xceeded when trying to connect)|^Query read timeout|is not queryable$/;

/**
 * Whether the same statement may succeed later: connection errors, shutdown, lack of resources, locks; never a programming error. Without a
 * SQLSTATE it may have been executed: check before retrying.
 */
export function isTransientError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof SwitchyardError) return TRANSIENT_CODES.has(error.code);
  const state = sqlStateOf(error);
  if (state !== null) return TRANSIENT_CLASS.test(state) || TRANSIENT_STATES.has(state) || isStalePlan(error);
  return isSystemFault(codeOf(error)) || TRANSIENT_MESSAGES.test(error.message);
}

/**
 * Whether a prepared statement was refused as outdated: a migration changed its table, or a proxy has forgotten it. It was not executed; a new
 * connection prepares it again.
 */
export function isStalePlan(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '26000' || (state === '0A000' && error instanceof Error && 'routine' in error && error.routine === 'RevalidateCachedQuery');
}

/** `ERR_…` are Node's codes for programming errors. */
function isSystemFault(code: string | null): boolean {
  return code !== null && /^E[A-Z_]+$/.test(code) && !code.startsWith('ERR_');
}

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
