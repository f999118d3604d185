import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { buildStamp, readStamp } from '../scripts/stamp.mjs';
import { startTestServices } from '../scripts/test-services.mjs';

declare module 'vitest' {
  /** What `inject()` gives to tests that need it. */
  export interface ProvidedContext {
    redisUrl: string;
    /** Of the database `postgres`, as its superuser and without a password. */
    postgresUrl: string;
    /** Path of the browser's program. */
    chromiumPath: string;
  }
}

/** Once per run, before the first test that needs servers; a run of unit tests alone never comes here. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // The paths of this run alone: a test of a driver runs from the sources.
  if (project.vitest.state.getPaths().some((path) => /\/tests\/(?:e2e|chaos)\//.test(path))) refuseOldBuild();
  // For a test of the built program alone, which needs none of them.
  if (process.env.SWITCHYARD_TEST_SERVICES === '0') return undefined;
  const { stop, ...services } = await startTestServices();
  project.provide('redisUrl', services.redisUrl);
  project.provide('postgresUrl', services.postgresUrl);
  project.provide('chromiumPath', services.chromiumPath);
  return stop;
}

/** Tests of whole processes run dist/. `npm test` builds first; a bare `vitest run` after an edit would judge the code of yesterday. */
function refuseOldBuild(): void {
  const root = fileURLToPath(new URL('..', import.meta.url));
  if (readStamp(`${root}dist`) !== buildStamp(root)) throw new Error('run npm test, dist is old');
}
