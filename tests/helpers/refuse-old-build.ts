import { fileURLToPath } from 'node:url';
import { buildStamp, readStamp } from '../../scripts/stamp.mjs';

/** Tests of whole processes run dist/. `npm test` builds first; a bare `vitest run` after an edit would test an old build. @throws then */
export function refuseOldBuild(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  if (readStamp(`${root}dist`) !== buildStamp(root)) throw new Error('run npm test, dist is old');
}
