import { z } from 'zod';
import type { ThinkingBlock } from './blocks.ts';

/** Of reasoning in answers: which dialect reads it when it is sent back. */
export const ANTHROPIC_FORMAT = 'anthropic-claude-v1';

const common = { index: z.number().nullish(), format: z.string().nullish() };
const reasoningDetail = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reasoning.text'), text: z.string().nullish(), signature: z.string().nullish(), ...common }),
  z.object({ type: z.literal('reasoning.encrypted'), data: z.string(), ...common }),
]);

interface OpenThinking {
  type: 'thinking';
  index: number | null;
  thinking: string;
  signature: string;
}

/**
 * The blocks of reasoning that a client sent back, in their order. Pieces of one block, as a stream has them, are joined. Texts without a signature and blocks of
 * other vendors are left out: the API refuses both.
 */
export function toThinkingBlocks(details: unknown): ThinkingBlock[] {
  if (!Array.isArray(details)) return [];
  const blocks: (OpenThinking | Extract<ThinkingBlock, { type: 'redacted_thinking' }>)[] = [];
  for (const given of details) {
    const detail = reasoningDetail.safeParse(given).data;
    if (detail === undefined || (detail.format ?? ANTHROPIC_FORMAT) !== ANTHROPIC_FORMAT) continue;
    if (detail.type === 'reasoning.encrypted') {
      blocks.push({ type: 'redacted_thinking', data: detail.data });
      continue;
    }
    const index = detail.index ?? null;
    const last = blocks.at(-1);
    // A signature ends its block; without numbers only that shows where the next one begins.
    const continues = last?.type === 'thinking' && (index === null ? last.signature === '' : last.index === index);
    const block: OpenThinking = continues ? last : { type: 'thinking', index, thinking: '', signature: '' };
    if (!continues) blocks.push(block);
    block.thinking += detail.text ?? '';
    block.signature += detail.signature ?? '';
  }
  return blocks.flatMap((block): ThinkingBlock[] => {
    if (block.type !== 'thinking') return [block];
    return block.signature === '' ? [] : [{ type: 'thinking', thinking: block.thinking, signature: block.signature }];
  });
}
