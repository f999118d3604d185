import type { TestProject } from 'vitest/node';
import { startTestServices } from '../scripts/servers/test-services.mjs';
import { refuseOldBuild } from './helpers/refuse-old-build.ts';

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
