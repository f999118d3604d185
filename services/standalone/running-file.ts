import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeReadyFile } from '#shared/lifecycle/ready-file.ts';
import type { KeyLocation } from './callers-keys.ts';

/** What the data folder's running.json is made of, for `npm run ask` (scripts/ask.mjs) and the command line. Holds no key. */
export interface RunningFacts {
  /** What was started: `npm start`, or `npm run cluster`. */
  kind: 'start' | 'cluster';
  pid: number;
  /** `urls` may be empty in a cluster. `key` null: no key is accepted. */
  router: { urls: readonly string[]; key: KeyLocation | null };
  agent: { urls: readonly string[]; key: KeyLocation };
}

const NAME = 'running.json';

/** Beside all addresses it has the first one as `url`, which an `ask` of an earlier release reads. */
export async function writeRunningFile(dataFolder: string, { router, agent, ...facts }: RunningFacts): Promise<void> {
  const withFirst = <Server extends { urls: readonly string[] }>(server: Server) => ({ url: server.urls[0] ?? '', ...server });
  await writeReadyFile(join(dataFolder, NAME), { ...facts, router: withFirst(router), agent: withFirst(agent) });
}

export async function removeRunningFile(dataFolder: string): Promise<void> {
  await rm(join(dataFolder, NAME), { force: true });
}
