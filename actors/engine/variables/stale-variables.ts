import type { Documents } from '#shared/config/bundle-body.ts';
import { hasPassed } from '#shared/cron.ts';
import { declaredVariables } from './variable-values.ts';

/** A variable of a customer whose value a tool is to fetch. */
export interface StaleVariable {
  name: string;
  type: string;
  /** `server:tool`. */
  toolId: string;
  /** Of the stored value, epoch ms; null: the customer has none. */
  writtenAtMs: number | null;
}

/** Fetched values are those of one customer: stale without one, and once a time of `freshness` has passed since the last write (rule 96). */
export function staleVariables(
  documents: Pick<Documents, 'variable_sets'>,
  names: readonly string[],
  { customerId, values, nowMs }: { customerId: string; values: readonly { key: string; name: string; updatedAtMs: number }[]; nowMs: number },
): StaleVariable[] {
  return [...declaredVariables(documents).values()].flatMap(({ name, type, tool_id: toolId, freshness }) => {
    if (toolId === null || !names.includes(name)) return [];
    const writtenAtMs = values.find((value) => value.key === customerId && value.name === name)?.updatedAtMs ?? null;
    const isStale = writtenAtMs === null || (freshness !== null && hasPassed(freshness, writtenAtMs, nowMs));
    return isStale ? [{ name, type, toolId, writtenAtMs }] : [];
  });
}
