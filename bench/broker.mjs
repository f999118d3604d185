import { spawnSync } from 'node:child_process';
import { ensurePrograms } from '../scripts/servers/programs.mjs';

/** The first that can sync on each write: an earlier one does not start with the setting. */
const SYNCS_SINCE = [2, 10];

/** The broker that the targets run on. @returns {Promise<{ program: string, version: string, canSync: boolean }>} `canSync`: on each write, as deploy/ has it */
export async function brokerInUse() {
  const { nats: program } = await ensurePrograms(['nats'], { purpose: 'the targets run on NATS', print: console.error });
  const [version = 'of unknown version'] = /\d+\.\d+\.\d+\S*/.exec(spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout) ?? [];
  return { program, version, canSync: canSync(version) };
}

/** @param {string} version */
export function canSync(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [sinceMajor = 0, sinceMinor = 0] = SYNCS_SINCE;
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor);
}
