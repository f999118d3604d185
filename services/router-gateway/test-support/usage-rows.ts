import { type UsageRecord, usageRecordText } from '#bus/messages/usage.ts';
import type { Queryable } from '#shared/storage/database.ts';

const CREATED_AT_MS = Date.parse('2026-11-22T11:59:00Z');

/** A call whose second attempt answered, with an example of every field. */
export function usageRecordOf(more: Partial<UsageRecord> & Pick<UsageRecord, 'generationId' | 'keyId'>): UsageRecord {
  const attempt = { model: 'acme/large', startedAtMs: CREATED_AT_MS, firstTokenMs: null, durationMs: 300 };
  return {
    v: 1,
    reserved: false,
    kind: 'client',
    surface: 'chat-completions',
    createdAtMs: CREATED_AT_MS,
    endedAtMs: CREATED_AT_MS + 1_500,
    streamed: true,
    cancelled: false,
    model: 'acme/large',
    provider: 'east',
    providerName: 'East',
    upstreamId: 'chatcmpl-1',
    tokens: { prompt: 100, completion: 20, cached: 10, cacheWrite: 30, cacheWrite1h: 20, reasoning: 5 },
    estimated: false,
    costNano: 1_200_000,
    attempts: [
      { ...attempt, provider: 'west', providerName: 'West', status: 502, code: 'router.provider_unavailable', costNano: 100_000 },
      {
        ...attempt,
        provider: 'east',
        providerName: 'East',
        status: 200,
        code: null,
        startedAtMs: CREATED_AT_MS + 300,
        firstTokenMs: 150,
        durationMs: 1_200,
        costNano: 1_000_000,
      },
    ],
    finishReason: 'stop',
    nativeFinishReason: 'end_turn',
    sessionId: 'conversation-1',
    user: 'customer-1',
    metadata: { shop: 'north' },
    serviceTier: 'standard',
    ...more,
  };
}

/** As the ledger's writer stores it. @param textOf another one for rows of earlier releases */
export async function storeUsage(database: Queryable, record: UsageRecord, textOf = usageRecordText): Promise<void> {
  const { generationId, keyId, createdAtMs, model, provider, tokens, costNano } = record;
  await database.query(
    `insert into usage_ledger (generation_id, key_id, created_at, model, provider, prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, record)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::json)`,
    [generationId, keyId, new Date(createdAtMs), model, provider, tokens.prompt, tokens.completion, tokens.reasoning, costNano, textOf(record)],
  );
}
