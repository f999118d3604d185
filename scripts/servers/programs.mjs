import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ScriptError } from '../run-script.mjs';

/** @typedef {{ nats: string, redis: string, chromium: string, postgresBin: string, prometheus: string, promtool: string, haproxy: string, zsh: string }} Programs paths; PostgreSQL's is the folder of its programs */
/** @typedef {{ [Program in keyof Programs]: string | null }} Found */

/** Debian packages. */
const packages = {
  nats: 'nats-server',
  redis: 'redis-server',
  postgresBin: 'postgresql',
  chromium: 'chromium',
  prometheus: 'prometheus',
  promtool: 'prometheus',
  haproxy: 'haproxy',
  zsh: 'zsh',
};

/** A user's PATH often lacks the first two. */
const FOLDERS_OF_SERVERS = ['/usr/sbin', '/usr/local/sbin', '/usr/local/bin', '/usr/bin', '/opt/homebrew/bin'];
/** A browser's first start on a slow disk takes longest. */
const VERSION_TIMEOUT_MS = 30_000;

/**
 * Finds the server programs; installs missing ones as root on Debian or Ubuntu, without prompts. Running servers of the distribution are not
 * touched.
 *
 * @template {keyof Programs} Name
 * @param {readonly Name[]} names
 * @param {{ purpose: string, print?: (line: string) => void }} options `purpose` begins the sentence that says why they are needed
 * @returns {Promise<Pick<Programs, Name>>}
 * @throws {ScriptError} with the command to type, when something is missing and can't be installed
 */
export async function ensurePrograms(names, { purpose, print = console.log }) {
  const found = findPrograms(names);
  const missing = [...new Set(missingFrom(found).map((program) => packages[program]))];
  if (missing.length === 0) return complete(found, names);
  if (process.getuid?.() !== 0 || !canRun('apt-get')) throw new ScriptError(howToInstall(missing, purpose));
  print(`Installing ${missing.join(', ')} (first run only) …`);
  installPackages(missing);
  return complete(findPrograms(names), names);
}

/** @param {readonly (keyof Programs)[]} names @returns {Partial<Found>} */
function findPrograms(names) {
  const finders = {
    nats: () => findProgram(['nats-server']),
    redis: () => findProgram(['redis-server']),
    chromium: () => findProgram(['chromium', 'chromium-browser', 'google-chrome']),
    postgresBin: findPostgres,
    prometheus: () => findProgram(['prometheus']),
    promtool: () => findProgram(['promtool']),
    haproxy: () => findProgram(['haproxy'], '-v'),
    zsh: () => findProgram(['zsh']),
  };
  return Object.fromEntries(names.map((name) => [name, finders[name]()]));
}

/** @param {Partial<Found>} found */
function missingFrom(found) {
  return /** @type {(keyof Programs)[]} */ (Object.keys(packages)).filter((program) => found[program] === null);
}

/**
 * @template {keyof Programs} Name
 * @param {Partial<Found>} found
 * @param {readonly Name[]} names
 * @returns {Pick<Programs, Name>}
 */
function complete(found, names) {
  if (missingFrom(found).length > 0) {
    throw new ScriptError(`${missingFrom(found).join(', ')} is installed and can't be run: start it by hand to see why.`);
  }
  return /** @type {Pick<Programs, Name>} */ (Object.fromEntries(names.map((name) => [name, found[name]])));
}

/** @param {string[]} names in order of preference @param {string} [flag] with which it prints its version and ends */
function findProgram(names, flag) {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== ''), ...FOLDERS_OF_SERVERS];
  const candidates = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return candidates.find((path) => existsSync(path) && canRun(path, flag)) ?? null;
}

/** Never on the PATH: Debian has a folder per version. `PG_BIN` overrides the search. */
function findPostgres() {
  const given = process.env.PG_BIN;
  const isGiven = given !== undefined && given !== '';
  const candidates = isGiven ? [given] : [...debianFolders(), ...FOLDERS_OF_SERVERS];
  const needed = ['initdb', 'postgres', 'psql'];
  const found = candidates.find((folder) => needed.every((name) => existsSync(join(folder, name))) && canRun(join(folder, 'postgres'))) ?? null;
  // Installing another version would not help.
  if (found === null && isGiven) throw new ScriptError(`PG_BIN is ${given}, which does not contain ${needed.join(', ')}.`);
  return found;
}

/** Highest version first. */
function debianFolders() {
  const base = '/usr/lib/postgresql';
  if (!existsSync(base)) return [];
  return readdirSync(base)
    .sort((one, other) => Number.parseFloat(other) - Number.parseFloat(one))
    .map((version) => join(base, version, 'bin'));
}

/** A half-installed package has the file too. @param {string} program */
function canRun(program, flag = '--version') {
  return spawnSync(program, [flag], { stdio: 'ignore', timeout: VERSION_TIMEOUT_MS }).status === 0;
}

const INSTALL = ['install', '-y', '--no-install-recommends', '-o', 'DPkg::Lock::Timeout=120'];

/** @param {string[]} names */
function installPackages(names) {
  for (const args of [['update'], [...INSTALL, ...names]]) {
    // Without stdin apt-get can't prompt.
    const { status, stdout, stderr } = spawnSync('apt-get', args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
    if (status !== 0) throw new ScriptError(`apt-get ${args.join(' ')} failed:\n${stdout}${stderr}`);
  }
}

/** @param {string[]} names @param {string} purpose */
function howToInstall(names, purpose) {
  return [
    `${purpose}, and these are missing: ${names.join(', ')}. On Debian or Ubuntu run`,
    `  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${names.join(' ')}`,
    'and start again. (PG_BIN may name the folder of initdb, postgres and psql.)',
  ].join('\n');
}
