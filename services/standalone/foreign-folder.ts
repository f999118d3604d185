import { readdir } from 'node:fs/promises';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** One of these is in every data folder, from the first moment on. */
const OURS = /^(switchyard\.lock|keys\.json|database)/;
/** In the root of a disk of its own, and hidden files, which a system or a person leaves anywhere. */
const NOBODYS = /^(lost\+found$|\.)/;

/**
 * A folder with somebody else's files is not to become a data folder: most likely a setting is wrong, and the data are elsewhere.
 * @throws `config.invalid` naming the folder and one of its files
 */
export async function refuseForeignFolder(folder: string): Promise<void> {
  // One that is not there is made later, and one that can't be read is refused then, with the reason.
  const names = await readdir(folder).catch((): string[] => []);
  const [foreign] = names.filter((name) => !NOBODYS.test(name));
  if (foreign === undefined || names.some((name) => OURS.test(name))) return;
  const advice = 'set DATA_DIR to the folder that has the data, or to an empty one';
  throw new SwitchyardError('config.invalid', `the data folder ${folder} holds files of something else, such as ${foreign}: ${advice}`);
}
