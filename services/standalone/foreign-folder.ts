import { readdir } from 'node:fs/promises';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** At least one is in every data folder. */
const OWN_NAMES = /^(switchyard\.lock|keys\.json|database)/;
/** In a mount's root, and hidden files, which may be anywhere. */
const IGNORED = /^(lost\+found$|\.)/;

/**
 * Refuses a folder with foreign files: most likely DATA_DIR is wrong and the data are elsewhere.
 * @throws `config.invalid` naming the folder and one of the files
 */
export async function refuseForeignFolder(folder: string): Promise<void> {
  // A missing folder is created later, an unreadable one refused with the reason.
  const names = await readdir(folder).catch((): string[] => []);
  const [foreign] = names.filter((name) => !IGNORED.test(name));
  if (foreign === undefined || names.some((name) => OWN_NAMES.test(name))) return;
  const advice = 'set DATA_DIR to the folder of an earlier start, or to an empty one';
  throw new SwitchyardError('config.invalid', `the data folder ${folder} contains files of another program, such as ${foreign}: ${advice}`);
}
