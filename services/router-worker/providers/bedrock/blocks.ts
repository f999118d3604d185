import type { CacheControl } from '../anthropic/blocks.ts';

/** Blocks of a request, as the Converse API has them; bytes are base64. */
export interface TextBlock {
  text: string;
}

export type MediaBlock =
  | { image: { format: string; source: { bytes: string } } }
  /** Not fetched yet: the echo of a request shows it, and it is never sent. */
  | { image: { source: { url: string } } }
  | { document: { format: string; name: string; source: { bytes: string } } };

export type ReasoningContent = { reasoningContent: { reasoningText: { text: string; signature: string } } | { redactedContent: string } };

export interface ToolUse {
  toolUse: { toolUseId: string; name: string; input: object };
}

interface ToolResult {
  toolResult: { toolUseId: string; content: (TextBlock | MediaBlock)[] };
}

export interface CachePoint {
  cachePoint: { type: 'default'; ttl?: '1h' };
}

export type Block = TextBlock | MediaBlock | ReasoningContent | ToolUse | ToolResult;

/** A block, a text of the system or a tool, and the caller's mark on it. */
export interface Marked<Item> {
  item: Item;
  cache_control?: CacheControl;
}

export function marked<Item>(item: Item, mark: CacheControl | undefined): Marked<Item> {
  return mark === undefined ? { item } : { item, cache_control: mark };
}
