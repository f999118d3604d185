import { expect, it } from 'vitest';
import { USAGE_RECORD_VERSION, type UsageAttempt, type UsageRecord, usageRecord } from './usage.ts';

const attempt: UsageAttempt = {
  provider: 'one',
  providerName: 'One',
  model: 'acme/model',
  status: 200,
  code: null,
  startedAtMs: 1_000,
  firstTokenMs: 20,
  durationMs: 40,
  costNano: 15,
};

const record: UsageRecord = {
  v: USAGE_RECORD_VERSION,
  generationId: 'gen-g1-01',
  keyId: 'one',
  reserved: true,
  kind: 'client',
  surface: 'chat-completions',
  createdAtMs: 1_000,
  endedAtMs: 1_040,
  streamed: false,
  cancelled: false,
  model: 'acme/model',
  provider: 'one',
  providerName: 'One',
  upstreamId: null,
  tokens: { prompt: 10, completion: 5, cached: 0, cacheWrite: 0, reasoning: 0 },
  estimated: false,
  costNano: 15,
  attempts: [attempt],
  finishReason: 'stop',
  nativeFinishReason: 'stop',
  sessionId: null,
  user: null,
  metadata: null,
  serviceTier: null,
};

it('reads back what was written', () => {
  expect(usageRecord.parse(JSON.parse(JSON.stringify(record)))).toEqual(record);
});

it.each([
  ['a negative cost', { ...record, costNano: -1 }],
  ['a part of a billionth', { ...record, costNano: 0.5 }],
  ['negative tokens', { ...record, tokens: { ...record.tokens, completion: -5 } }],
  ['another version', { ...record, v: 2 }],
])('refuses %s', (_, written) => {
  expect(usageRecord.safeParse(written).success).toBe(false);
});
