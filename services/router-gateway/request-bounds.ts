import type { GatewayLimits } from './limits.ts';

/**
 * The bound that a parsed body exceeds, as a message; null when it is within bounds. Call it before anything else reads the body: the
 * validation collects an issue per invalid value, and later readers and writers recurse.
 */
export function excessOf(body: unknown, { bodyDepth, bodyValues }: Pick<GatewayLimits, 'bodyDepth' | 'bodyValues'>): string | null {
  let values = 0;
  const walk = (value: unknown, levels: number): string | null => {
    values += 1;
    if (values > bodyValues) return `The request holds more than ${bodyValues} values`;
    if (value === null || typeof value !== 'object') return null;
    if (levels === 0) return `The request is nested more than ${bodyDepth} levels deep`;
    for (const child of Array.isArray(value) ? value : Object.values(value)) {
      const excess = walk(child, levels - 1);
      if (excess !== null) return excess;
    }
    return null;
  };
  return walk(body, bodyDepth);
}
