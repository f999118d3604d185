import { SwitchyardError } from '../errors/switchyard-error.ts';

/** SQLSTATE classes: digits first, or one of the few that begin with a letter. Keeps `EPIPE` and its kin out. */
const SQL_STATE = /^(\d[0-9A-Z]|F0|HV|P0|XX)[0-9A-Z]{3}$/;

/** The SQLSTATE of a database error; null when the error is of another kind, such as a lost connection. */
export function sqlStateOf(error: unknown): string | null {
  const code = codeOf(error);
  return code !== null && SQL_STATE.test(code) ? code : null;
}

/** Classes of SQLSTATE whose cause lies outside the statement: connections, rolled back for another's sake, resources, operators, the system. */
const TRANSIENT_CLASS = /^(08|40|53|57|58)/;

/** The same, one by one. */
const TRANSIENT_STATES: ReadonlySet<string> = new Set([
  '55P03', // a lock was not had in time
  '55006', // an object is in use
  '25006', // the server only reads: the writer is elsewhere by now
  '25P03', // a transaction that was idle too long, and its connection with it
  '25P04', // a transaction that took too long
]);

/** Ours that say so: the database's own queue is full, which drains, or there was no connection, or none any more. */
const TRANSIENT_CODES: ReadonlySet<string> = new Set(['service.not_ready', 'service.unreachable']);

/** What `pg` says of a lost connection where it gives no code. */
const TRANSIENT_MESSAGES = /^Connection terminated|^timeout e(xpired|xceeded when trying to connect)|^Query read timeout|is not queryable$/;

/**
 * Whether the same statement may pass later: connection trouble, shutdown, lack of resources, locks. A fault of our own never is. Unless
 * the server said otherwise, the statement may have been carried out: read before trying again.
 */
export function isTransientError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof SwitchyardError) return TRANSIENT_CODES.has(error.code);
  const state = sqlStateOf(error);
  if (state !== null) return TRANSIENT_CLASS.test(state) || TRANSIENT_STATES.has(state) || isStalePlan(error);
  return isSystemFault(codeOf(error)) || TRANSIENT_MESSAGES.test(error.message);
}

/**
 * Whether a prepared statement was refused because it no longer fits: a migration changed a table under it, or a proxy between us and the
 * server has forgotten it. Nothing was carried out, and a new connection prepares it anew.
 */
export function isStalePlan(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === '26000' || (state === '0A000' && error instanceof Error && 'routine' in error && error.routine === 'RevalidateCachedQuery');
}

/** `ECONNRESET` and its kin come from the system; `ERR_…` are Node's words for a program's own faults. */
function isSystemFault(code: string | null): boolean {
  return code !== null && /^E[A-Z_]+$/.test(code) && !code.startsWith('ERR_');
}

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
