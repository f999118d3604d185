import type { Routine } from '../contracts/documents/routine.ts';

/** A field that is accepted without effect; short enough for one line of an 80-column terminal. */
export interface BlockWithoutEffect {
  /** Dotted path from the document's root. */
  path: string;
  missing: string;
}

/** Fields that this release accepts and does not implement. The change that implements one removes its entry. */
export const manifestBlocks: readonly BlockWithoutEffect[] = [];

/** The same for autonomous routines. */
export const autonomousBlocks: readonly BlockWithoutEffect[] = [
  { path: 'steps', missing: 'a run has no steps' },
  { path: 'policies', missing: 'no policy is matched' },
];

/**
 * Configured fields without effect, one line each.
 *
 * @param manifest before parsing, so that defaults are not reported
 */
export function blocksWithoutEffect(manifest: unknown, routines: readonly Routine[]): string[] {
  const lines = manifestBlocks.filter(({ path }) => isGiven(manifest, path)).map(({ path, missing }) => `${path} (${missing})`);
  for (const routine of routines) {
    const name = `routine ${routine.id}`;
    if (routine.kind === 'autonomous')
      lines.push(...autonomousBlocks.filter(({ path }) => isGiven(routine, path)).map(({ path, missing }) => `${name}: ${path} (${missing})`));
  }
  return lines;
}

/** Null, false and empty values ask for nothing. */
function isGiven(document: unknown, path: string): boolean {
  let value = document;
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null) return false;
    value = Object.entries(value).find(([name]) => name === key)?.[1];
  }
  if (value === undefined || value === null || value === false) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}
