import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { freeFolder } from '../helpers/free-folder.ts';

/** A small tmpfs. */
export interface Volume {
  folder: string;
  /** Fills it with an unrelated file, except for the given number of bytes. */
  fill(leaveBytes: number): void;
  /** Deletes that file and makes the disk four times as large: what was written meanwhile may have used all of it. */
  makeRoom(): void;
}

const mounted: string[] = [];
const unmountAll = () => {
  for (const folder of mounted.splice(0)) execFileSync('umount', ['-l', folder]);
};
// Runs before the folder itself is removed: hooks run in the reverse order of registration, and free-folder.ts was imported first.
afterAll(unmountAll);
process.on('exit', unmountAll);

/** Null where this process may not mount, and with SWITCHYARD_TEST_NO_MOUNT, which runs the tests in that mode. */
export async function smallVolume(sizeMiB: number): Promise<Volume | null> {
  if (process.env.SWITCHYARD_TEST_NO_MOUNT) return null;
  const folder = await freeFolder('volume');
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMiB}m`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return null;
  }
  mounted.push(folder);
  const filler = join(folder, 'filler');
  const freeBytes = () => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  };
  return {
    folder,
    fill: (leaveBytes) => writeFileSync(filler, Buffer.alloc(Math.max(0, freeBytes() - leaveBytes))),
    makeRoom: () => {
      rmSync(filler);
      execFileSync('mount', ['-o', `remount,size=${4 * sizeMiB}m`, folder]);
    },
  };
}

/** Remounts it read-only, for root too. @returns its folder */
export function makeReadOnly({ folder }: Pick<Volume, 'folder'>): string {
  execFileSync('mount', ['-o', 'remount,ro', folder]);
  return folder;
}
