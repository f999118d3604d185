import type { TestProject } from 'vitest/node';
import { startTestServices } from '../scripts/servers/test-services.mjs';
import { refuseOldBuild } from './helpers/refuse-old-build.ts';

declare module 'vitest' {
  /** Values that tests read with `inject()`. */
  export interface ProvidedContext {
    redisUrl: string;
    /** Address of the database `postgres`, as its superuser and without a password. */
    postgresUrl: string;
    /** Path of the browser's program. */
    chromiumPath: string;
  }
}

/** Once per run, before the first test that needs servers; not run for unit tests alone. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // Depends on the paths of this run: a test of a driver runs from the sources.
  if (project.vitest.state.getPaths().some((path) => /\/tests\/(?:e2e|chaos)\//.test(path))) refuseOldBuild();
  // A test of the built program alone needs no servers.
  if (process.env.SWITCHYARD_TEST_SERVICES === '0') return undefined;
  const { stop, ...services } = await startTestServices();
  project.provide('redisUrl', services.redisUrl);
  project.provide('postgresUrl', services.postgresUrl);
  project.provide('chromiumPath', services.chromiumPath);
  return stop;
}
