import { z } from 'zod';

/** Of reasoning in answers: which dialect reads it when it is sent back. */
export const RESPONSES_FORMAT = 'openai-responses-v1';

const common = { id: z.string().nullish(), index: z.number().nullish(), format: z.literal(RESPONSES_FORMAT) };
const reasoningDetail = z.discriminatedUnion('type', [
  z.object({ type: z.literal('reasoning.summary'), summary: z.string(), ...common }),
  z.object({ type: z.literal('reasoning.encrypted'), data: z.string().min(1), ...common }),
]);

export interface ReasoningItem {
  type: 'reasoning';
  id?: string;
  summary: { type: 'summary_text'; text: string }[];
  encrypted_content: string;
}

/** The reasoning that a client sent back, in its order; pieces of a stream are joined. Without its encrypted content the API knows no item: nothing is stored. */
export function toReasoningItems(details: unknown): ReasoningItem[] {
  const items = new Map<string, { id: string | null; summary: string; encrypted: string | null }>();
  for (const given of Array.isArray(details) ? details : []) {
    const detail = reasoningDetail.safeParse(given).data;
    if (detail === undefined) continue;
    const key = detail.id ?? String(detail.index ?? '');
    const item = items.get(key) ?? { id: detail.id ?? null, summary: '', encrypted: null };
    items.set(key, item);
    if (detail.type === 'reasoning.summary') item.summary += detail.summary;
    else item.encrypted = detail.data;
  }
  return [...items.values()].flatMap(({ id, summary, encrypted }) =>
    encrypted === null
      ? []
      : [
          {
            type: 'reasoning' as const,
            ...(id === null ? {} : { id }),
            summary: summary === '' ? [] : [{ type: 'summary_text' as const, text: summary }],
            encrypted_content: encrypted,
          },
        ],
  );
}
