import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { freeFolder } from '../helpers/free-folder.ts';
import { root } from '../helpers/run-program.ts';
import { smallVolume } from './edge-disk-volume.ts';

/** The disk of a data folder, which a test can fill. */
export interface Disk {
  dataDir: string;
  /** For the program that uses it. */
  env: Record<string, string>;
  /** From now on, or soon, there is no space for more rows, or for the WAL. */
  fill(what: 'tables' | 'log'): void;
  makeRoom(): void;
  isReal: boolean;
}

const MIB = 1024 * 1024;
/** The WAL has half a segment left then, some 8 MiB, and each row is written to it and to its table. */
const LEAVE_BYTES = { tables: MIB, log: 12 * MIB };

/** A tmpfs of 64 MiB where mounting is allowed, else a folder whose writes fail as on a full disk. */
export async function diskThatFills(): Promise<Disk> {
  const volume = await smallVolume(64);
  if (volume === null) return injected();
  return { dataDir: join(volume.folder, 'data'), env: {}, fill: (what) => volume.fill(LEAVE_BYTES[what]), makeRoom: volume.makeRoom, isReal: true };
}

async function injected(): Promise<Disk> {
  const folder = await freeFolder('disk');
  const flag = join(folder, 'full');
  return {
    dataDir: join(folder, 'data'),
    env: { EDGE_DISK_FULL_FLAG: flag, NODE_OPTIONS: `--import=${pathToFileURL(`${root}tests/chaos/edge-disk-full.mjs`)}` },
    fill: (what) => writeFileSync(flag, what === 'tables' ? '/base/' : '/pg_wal/'),
    makeRoom: () => rmSync(flag),
    isReal: false,
  };
}
