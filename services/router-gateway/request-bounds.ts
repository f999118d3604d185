import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { BodyBounds } from '#shared/http-server/json-bodies.ts';
import type { JsonBounds } from '#shared/http-server/json-bounds.ts';
import type { GatewayLimits } from './limits.ts';

type Bounds = Pick<GatewayLimits, 'bodyDepth' | 'bodyValues'>;

/** The same bounds, of a large body before it is parsed. */
export function boundsOf(limits: Bounds): BodyBounds {
  return {
    by: { depth: limits.bodyDepth, values: limits.bodyValues },
    refusal: ({ bound }) => new SwitchyardError('request.invalid', sentenceOf(bound, limits), { details: { param: '' } }),
  };
}

/**
 * The bound that a parsed body exceeds, as a message; null when it is within bounds. Call it before anything else reads the body: the
 * validation collects an issue per invalid value, and later readers and writers recurse.
 */
export function excessOf(body: unknown, limits: Bounds): string | null {
  let values = 0;
  const walk = (value: unknown, levels: number): string | null => {
    values += 1;
    if (values > limits.bodyValues) return sentenceOf('values', limits);
    if (value === null || typeof value !== 'object') return null;
    if (levels === 0) return sentenceOf('depth', limits);
    for (const child of Array.isArray(value) ? value : Object.values(value)) {
      const excess = walk(child, levels - 1);
      if (excess !== null) return excess;
    }
    return null;
  };
  return walk(body, limits.bodyDepth);
}

function sentenceOf(bound: keyof JsonBounds, { bodyDepth, bodyValues }: Bounds): string {
  return bound === 'values' ? `The request holds more than ${bodyValues} values` : `The request is nested more than ${bodyDepth} levels deep`;
}
