import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { sqlStateOf } from '#shared/storage/transient-error.ts';

/** What the engine says of files that it can't read, or not as they should be. */
const DAMAGED = /^(XX001|XX002|58)/;
const DISK_FULL = '53100';

/** What a start that failed says when the reason is the database's files, in words for people. Any other error comes back as it is. */
export function asDamage(error: unknown, dataFolder: string): unknown {
  const state = sqlStateOf(error);
  if (state === null || !(error instanceof Error)) return error;
  if (state === DISK_FULL) return new SwitchyardError('config.invalid', `the disk of ${dataFolder} is full: make room, and start again`, { cause: error });
  if (!DAMAGED.test(state)) return error;
  const text = `the database in ${dataFolder} is damaged (${error.message}): restore the folder from a copy, or choose another one (DATA_DIR)`;
  return new SwitchyardError('config.invalid', text, { cause: error });
}
