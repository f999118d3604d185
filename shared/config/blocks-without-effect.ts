import type { Policy } from '../contracts/documents/policy.ts';
import type { Prompt } from '../contracts/documents/prompt.ts';
import type { Routine } from '../contracts/documents/routine.ts';

/** A field that is accepted without effect; short enough for one line of an 80-column terminal. */
export interface BlockWithoutEffect {
  /** Dotted path from the document's root. */
  path: string;
  missing: string;
}

/** Fields that this release accepts and does not implement. The change that implements one removes its entry. */
export const manifestBlocks: readonly BlockWithoutEffect[] = [];

/**
 * Configured fields without effect, one line each.
 *
 * @param manifest before parsing, so that defaults are not reported
 */
export function blocksWithoutEffect(manifest: unknown, { prompts, routines, policies }: Configured): string[] {
  const lines = manifestBlocks.filter(({ path }) => isGiven(manifest, path)).map(({ path, missing }) => `${path} (${missing})`);
  return [...lines, ...prompts.flatMap(unfilledIn), ...routines.flatMap(unusedByTurns), ...routines.flatMap((routine) => unusedByRuns(routine, policies))];
}

interface Configured {
  prompts: readonly Prompt[];
  routines: readonly Routine[];
  policies: readonly Policy[];
}

/** What customers have written is data for the model, and no part of its instructions: the name has a message of its own. */
function unfilledIn({ id, text }: Prompt): string[] {
  return /\{\{\s*customer\.name\s*\}\}/.test(text) ? [`prompt ${id}: {{customer.name}} (models get it as data)`] : [];
}

/** A turn calls tools of steps and policies alone. */
function unusedByTurns({ id, kind, tools }: Routine): string[] {
  return kind === 'conversational' && tools.length > 0 ? [`routine ${id}: tools (name them in its steps or policies)`] : [];
}

/** Of a policy runs read the condition and the action, and their tools are those of the routine. */
function unusedByRuns(routine: Routine, policies: readonly Policy[]): string[] {
  if (routine.kind !== 'autonomous') return [];
  const own = policies.filter(({ id, routines }) => routine.policies.includes(id) || routines.includes(routine.id));
  return own.flatMap(({ id, action, tools, disambiguates }) => {
    const of = `routine ${routine.id}: policy ${id}`;
    if (action === null || disambiguates.length > 0) return [`${of} (a run follows actions alone)`];
    return tools.length > 0 ? [`${of}, tools (name them in the routine)`] : [];
  });
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
