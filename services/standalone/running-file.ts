import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeReadyFile } from '#shared/lifecycle/ready-file.ts';
import type { KeyLocation } from './callers-keys.ts';

/** The data folder's running.json, for `npm run ask` (scripts/ask.mjs): the process, its URLs, where the keys are. Holds no key. */
export interface RunningFacts {
  pid: number;
  /** `key` null: no key is accepted. */
  router: { url: string; key: KeyLocation | null };
  agent: { url: string; key: KeyLocation };
}

const NAME = 'running.json';

export async function writeRunningFile(dataFolder: string, facts: RunningFacts): Promise<void> {
  await writeReadyFile(join(dataFolder, NAME), facts);
}

export async function removeRunningFile(dataFolder: string): Promise<void> {
  await rm(join(dataFolder, NAME), { force: true });
}
