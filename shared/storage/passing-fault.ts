import { SwitchyardError } from '../errors/switchyard-error.ts';

/** SQLSTATE classes: digits first, or one of the few that begin with a letter. Keeps `EPIPE` and its kin out. */
const SQL_STATE = /^(\d[0-9A-Z]|F0|HV|P0|XX)[0-9A-Z]{3}$/;

/** The SQLSTATE of a database error; null when the error is of another kind, such as a lost connection. */
export function sqlStateOf(error: unknown): string | null {
  const code = codeOf(error);
  return code !== null && SQL_STATE.test(code) ? code : null;
}

/** Whether the same statement may pass later: connection trouble, shutdown, lack of resources, locks. A fault of our own never is. */
export function isPassingFault(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // The database's own queue is full: it drains.
  if (error instanceof SwitchyardError) return error.code === 'service.not_ready';
  const state = sqlStateOf(error);
  if (state !== null) return /^(08|40|53|57|58)/.test(state) || state === '55P03';
  return isSystemFault(codeOf(error)) || /connection|timeout/i.test(error.message);
}

/** `ECONNRESET` and its kin come from the system; `ERR_…` are Node's words for a program's own faults. */
function isSystemFault(code: string | null): boolean {
  return code?.startsWith('E') === true && !code.startsWith('ERR_');
}

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
