import type { CacheControl } from './blocks.ts';

/** The API refuses more. */
const MAX_BREAKPOINTS = 4;

interface Markable {
  cache_control?: CacheControl;
}

/**
 * Leaves the last breakpoints: each covers everything before it.
 *
 * @param items in the order of the prompt: tools, system, messages
 * @param reserved breakpoints that the request has elsewhere
 */
export function limitBreakpoints(items: readonly object[], reserved: number): void {
  const marked = items.filter((item): item is Markable => 'cache_control' in item);
  for (const item of marked.slice(0, Math.max(0, marked.length - (MAX_BREAKPOINTS - reserved)))) delete item.cache_control;
}
