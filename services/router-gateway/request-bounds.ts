import type { GatewayLimits } from './limits.ts';

/**
 * What there is too much of in a parsed body; null when it is within bounds. To be asked before anything else looks into the body: the
 * validation collects a fault for every value that is wrong, and every later reader and writer recurses.
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
