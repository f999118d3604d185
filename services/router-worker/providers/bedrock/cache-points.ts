import type { CacheControl } from '../anthropic/blocks.ts';
import { limitBreakpoints } from '../anthropic/limit-breakpoints.ts';
import type { CachePoint, Marked } from './blocks.ts';
import type { BedrockTraits } from './model-traits.ts';

/** Leaves the last marks that the API takes, of those where the model takes a cache point. @param items in the order of the prompt: tools, system, messages */
export function limitMarks(items: readonly Marked<object>[], traits: BedrockTraits): void {
  for (const marked of items) if (!takesPoint(marked.item, traits)) delete marked.cache_control;
  limitBreakpoints(items, 0);
}

function takesPoint(item: object, { caches, cachesTools }: BedrockTraits): boolean {
  return caches && (cachesTools || !('toolSpec' in item || 'toolResult' in item));
}

/** As they are sent: a cache point stands behind what it covers. */
export function withCachePoints<Item>(items: readonly Marked<Item>[], traits: BedrockTraits): (Item | CachePoint)[] {
  return items.flatMap(({ item, cache_control: mark }) => (mark === undefined ? [item] : [item, cachePoint(mark, traits)]));
}

/** Five minutes are the API's default. */
function cachePoint({ ttl }: CacheControl, { cachesHour }: BedrockTraits): CachePoint {
  return { cachePoint: { type: 'default', ...(ttl === '1h' && cachesHour ? { ttl } : {}) } };
}
