/** Blocks of a request, as Anthropic's API has them. */
export interface CacheControl {
  type: 'ephemeral';
  ttl?: '5m' | '1h';
}

export interface TextBlock {
  type: 'text';
  text: string;
  cache_control?: CacheControl;
}

export type Source =
  | { type: 'base64'; media_type: string; data: string }
  | { type: 'text'; media_type: 'text/plain'; data: string }
  | { type: 'url'; url: string }
  | { type: 'file'; file_id: string };

export type MediaBlock =
  | { type: 'image'; source: Source; cache_control?: CacheControl }
  | { type: 'document'; source: Source; title?: string; cache_control?: CacheControl };

export type ThinkingBlock = { type: 'thinking'; thinking: string; signature: string } | { type: 'redacted_thinking'; data: string };

export interface ToolUseBlock {
  type: 'tool_use';
  id: string;
  name: string;
  input: object;
  cache_control?: CacheControl;
}

interface ToolResultBlock {
  type: 'tool_result';
  tool_use_id: string;
  content?: (TextBlock | MediaBlock)[];
  cache_control?: CacheControl;
}

export type Block = TextBlock | MediaBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock;

export interface Message {
  role: 'user' | 'assistant';
  content: Block[];
}
