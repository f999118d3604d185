import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ledgerFieldsIn, USAGE_RECORD_VERSION, type UsageAttempt, type UsageRecord, usageRecord, usageRecordText } from './usage.ts';

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

const text = fc.oneof(fc.constantFrom('acme/model', 'one', 'gen-g1-02'), fc.string({ unit: 'binary' }));
const name = fc.option(text, { nil: null });
const count = fc.oneof(fc.nat(), fc.nat({ max: Number.MAX_SAFE_INTEGER }));
const some: fc.Arbitrary<UsageRecord> = fc
  .record({
    ...{ generationId: text, keyId: text, reserved: fc.boolean(), createdAtMs: count, model: name, provider: name, costNano: count, serviceTier: name },
    ...{
      tokens: fc.record(
        { prompt: count, completion: count, reasoning: count, cached: count, cacheWrite: count, cacheWrite1h: count },
        { requiredKeys: ['prompt', 'completion', 'reasoning', 'cached', 'cacheWrite'] },
      ),
      upstreamId: name,
      user: name,
    },
    ...{ streamed: fc.boolean(), cancelled: fc.boolean(), estimated: fc.boolean(), providerName: name, sessionId: name, nativeFinishReason: name },
    search: fc.option(fc.record({ searches: count, searchEngine: text, searchResults: count }, { requiredKeys: ['searches'] }), { nil: undefined }),
    // Gateways refuse bodies with it.
    metadata: fc.option(
      fc.dictionary(
        text.filter((key) => key !== '__proto__'),
        text,
      ),
      { nil: null },
    ),
    decision: fc.option(
      fc.oneof(
        fc.constant(null),
        fc.record({
          requested: fc.array(text),
          strategy: text,
          candidates: fc.array(fc.record({ endpoint: text, weight: fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }) })),
          tried: fc.array(fc.nat()),
        }),
      ),
      { nil: undefined },
    ),
    attempts: fc.array(
      fc.record({
        code: name,
        firstTokenMs: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true }), { nil: null }),
        costNano: fc.option(count, { nil: null }),
      }),
    ),
  })
  .map(({ attempts, search, ...changes }) => ({
    ...record,
    ...changes,
    ...search,
    attempts: attempts.map((change) => ({ ...attempt, ...change })),
  }));

it.each([
  ['with all fields, as earlier releases write it', (written: UsageRecord) => JSON.stringify(written)],
  ['without those that have their default', usageRecordText],
])('is read back whatever it contains, written %s', (_, textOf) => {
  fc.assert(
    fc.property(some, (written) => {
      expect(usageRecord.parse(JSON.parse(textOf(written)))).toEqual(JSON.parse(JSON.stringify(written)));
    }),
    { numRuns: 500 },
  );
});

it('has no nulls, no flags that are not set, and no names of its attempts that it has itself', () => {
  expect(usageRecordText({ ...record, decision: null })).toBe(
    '{"v":1,"generationId":"gen-g1-01","keyId":"one","reserved":true,"createdAtMs":1000,"model":"acme/model","provider":"one",' +
      '"tokens":{"prompt":10,"completion":5,"reasoning":0,"cached":0,"cacheWrite":0},"costNano":15,"endedAtMs":1040,' +
      '"attempts":[{"startedAtMs":1000,"durationMs":40,"firstTokenMs":20,"costNano":15}],"providerName":"One","finishReason":"stop","nativeFinishReason":"stop","decision":null}',
  );
});

it('has all fields where ledgers of earlier releases have to parse it', () => {
  const named = { ...record, keyId: 'a"b' };

  expect(usageRecordText(named)).toBe(JSON.stringify(named));
});

it('is refused with an attempt that has no name where the record has none', () => {
  const { provider: _, ...nameless } = attempt;

  expect(usageRecord.safeParse({ ...record, attempts: [nameless] }).success).toBe(true);
  expect(usageRecord.safeParse({ ...record, provider: null, attempts: [nameless] }).success).toBe(false);
});

it('takes next to no bytes for a decision where nothing was to decide, and none where none was made', () => {
  const bytes = (more: Partial<UsageRecord>) => usageRecordText({ ...record, ...more }).length;

  expect(bytes({ decision: null }) - bytes({})).toBe(',"decision":null'.length);
  expect(usageRecordText(record)).not.toContain('decision');
});

it('is read without a decision, as earlier releases write it, and with names of later ones', () => {
  const later = { requested: [], strategy: 'of-the-future', candidates: [{ endpoint: 'a@b', health: 'unknown-yet' }], tried: [0], newer: true };

  expect(usageRecord.parse(JSON.parse(usageRecordText(record))).decision).toBeUndefined();
  expect(usageRecord.parse({ ...record, decision: later }).decision).toMatchObject({ strategy: 'of-the-future' });
});

it('has the same fields for the ledger whether its text is parsed or only its head is read', () => {
  let heads = 0;
  fc.assert(
    fc.property(some, (written) => {
      const fields = ledgerFieldsIn(usageRecordText(written));
      if (fields === null) return;
      heads += 1;
      expect(written).toMatchObject(fields);
    }),
    // One record in some forty has no text that needs an escape.
    { numRuns: 2_000 },
  );
  expect(heads).toBeGreaterThan(0);
  expect(ledgerFieldsIn(usageRecordText(record))).toMatchObject({ generationId: 'gen-g1-01', keyId: 'one', reserved: true, costNano: 15 });
});

it.each([
  ['another version', JSON.stringify({ ...record, v: 2 })],
  ['a negative cost', usageRecordText({ ...record, costNano: -1 })],
  ['a part of a token', usageRecordText({ ...record, tokens: { ...record.tokens, prompt: 0.5 } })],
  ['a name with escapes', usageRecordText({ ...record, model: 'a"b' })],
  ['a number that is too large', usageRecordText({ ...record, costNano: 1e21 })],
  ['another order', JSON.stringify(Object.fromEntries(Object.entries(record).reverse()))],
  ['no record', '{"v":1}'],
])('has to be parsed with %s', (_, written) => {
  expect(ledgerFieldsIn(written)).toBeNull();
});

it.each([
  ['a negative cost', { ...record, costNano: -1 }],
  ['a part of a billionth', { ...record, costNano: 0.5 }],
  ['negative tokens', { ...record, tokens: { ...record.tokens, completion: -5 } }],
  ['another version', { ...record, v: 2 }],
])('refuses %s', (_, written) => {
  expect(usageRecord.safeParse(written).success).toBe(false);
});
