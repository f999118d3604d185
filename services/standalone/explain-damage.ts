import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { sqlStateOf } from '#shared/storage/transient-error.ts';

/** SQLSTATEs of unreadable or corrupt database files. */
const DAMAGED = /^(XX001|XX002|58)/;
const DISK_FULL = '53100';

/** Maps SQL errors of damaged files or a full disk to a message for people; returns any other error unchanged. */
export function explainDamage(error: unknown, dataFolder: string): unknown {
  const state = sqlStateOf(error);
  if (state === null || !(error instanceof Error)) return error;
  if (state === DISK_FULL)
    return new SwitchyardError('config.invalid', `the disk of ${dataFolder} is full: free some space on it, then start again`, { cause: error });
  if (!DAMAGED.test(state)) return error;
  const text = `the database in ${dataFolder} is damaged (${error.message}): restore the folder from a backup, or set DATA_DIR to another one`;
  return new SwitchyardError('config.invalid', text, { cause: error });
}
