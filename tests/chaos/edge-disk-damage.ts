import { chmodSync, cpSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** One kind of damage to a data folder, and the message of the refusal. */
interface Damage {
  name: string;
  /** @param folder a copy of an intact one, with sessions in it */
  do(folder: string): void;
  says: RegExp;
}

const database = (folder: string, ...path: string[]) => join(folder, 'database', ...path);
const DAMAGED = /the database in .*(damaged|is missing)/;

function garble(path: string): void {
  writeFileSync(path, Buffer.alloc(statSync(path).size, 0xa5));
}

/** The WAL segment that crash recovery reads. */
function lastSegment(folder: string): string {
  const names = readdirSync(database(folder, 'pg_wal')).filter((name) => /^[0-9A-F]{24}$/.test(name));
  return database(folder, 'pg_wal', names.sort().at(-1) ?? '');
}

/** Files of Switchyard's tables and indexes, without those of the system catalogues. */
function ourFiles(folder: string): string[] {
  const folders = readdirSync(database(folder, 'base')).filter((name) => name !== '1' && name !== '4');
  return folders.flatMap((one) =>
    readdirSync(database(folder, 'base', one))
      .filter((name) => /^\d+$/.test(name) && Number(name) >= 16_384)
      .map((name) => database(folder, 'base', one, name)),
  );
}

/** Of the engine's files, which only the engine finds. */
const ofEngine: readonly Damage[] = [
  { name: 'a control file that is garbled', do: (folder) => garble(database(folder, 'global/pg_control')), says: DAMAGED },
  { name: 'a control file that is cut off', do: (folder) => truncateSync(database(folder, 'global/pg_control'), 100), says: DAMAGED },
  { name: 'no control file', do: (folder) => rmSync(database(folder, 'global/pg_control')), says: DAMAGED },
  { name: 'a log segment that is garbled', do: (folder) => garble(lastSegment(folder)), says: DAMAGED },
  { name: 'no log segment', do: (folder) => rmSync(lastSegment(folder)), says: DAMAGED },
  { name: 'tables that are garbled', do: (folder) => ourFiles(folder).forEach(garble), says: DAMAGED },
  { name: 'tables that are cut off', do: (folder) => ourFiles(folder).forEach((path) => void truncateSync(path, 0)), says: DAMAGED },
  { name: 'no tables', do: (folder) => ourFiles(folder).forEach((path) => void rmSync(path)), says: DAMAGED },
];

const ofDatabase: readonly Damage[] = [
  { name: 'a database of another version', do: (folder) => writeFileSync(database(folder, 'PG_VERSION'), '12\n'), says: DAMAGED },
  { name: 'no database any more', do: (folder) => rmSync(database(folder), { recursive: true }), says: DAMAGED },
  {
    name: 'an empty folder in place of the database',
    do: (folder) => {
      rmSync(database(folder), { recursive: true });
      mkdirSync(database(folder));
    },
    says: DAMAGED,
  },
];

const ofFolder: readonly Damage[] = [
  {
    name: 'keys that are garbled',
    do: (folder) => garble(join(folder, 'keys.json')),
    says: /keys\.json is not a valid key file: restore it/,
  },
  {
    name: 'files of something else',
    do: (folder) => {
      renameSync(folder, `${folder}.moved`);
      mkdirSync(folder);
      writeFileSync(join(folder, 'letter.txt'), 'dear reader');
    },
    says: /the data folder .* contains files of another program, such as letter\.txt/,
  },
  {
    name: 'a file in place of the folder',
    do: (folder) => {
      renameSync(folder, `${folder}.moved`);
      writeFileSync(folder, '');
    },
    says: /the data folder .* can't be used/,
  },
];

/** By what is damaged. */
export const damages: readonly (readonly Damage[])[] = [ofEngine, ofDatabase, ofFolder];

/** A copy for the test to damage. */
export function copyOf(whole: string, into: string): string {
  cpSync(whole, into, { recursive: true });
  return into;
}

export function forbidWriting(folder: string): void {
  chmodSync(folder, 0o500);
}
