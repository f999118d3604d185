import { expect, it } from 'vitest';
import type { Bundle } from '#shared/config/load-bundle.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { RunFactsReader } from './run-facts.ts';

const RUNS = 20;

it('lets the event loop go on between the large inputs of a batch', async () => {
  const input = JSON.stringify({ text: 'x'.repeat(300_000) });
  const row = { session_id: 'ses_1', customer_id: 'c', ephemeral: true, routine_id: 'r', bundle_hash: 'h', metadata: '{"a":1}', callback_url: null };
  const times = { trace_id: 't', traceparent: null, timeout_ms: 1_000, expires_at: new Date(2_000), created_at: new Date(1_000) };
  const rows = Array.from({ length: RUNS }, (_, index) => ({ id: `run_${index}`, input, ...row, ...times }));
  const bundle = { body: { documents: { routines: [{ kind: 'autonomous', id: 'r', input_schema: { required: ['missing'] } }] } } } as unknown as Bundle;
  const database = { query: async () => ({ rows }) } as unknown as Queryable;
  const reader = new RunFactsReader({ database, bundleOf: async () => bundle, log: silentLog });
  let ticks = 0;
  let isDone = false;
  const count = () => {
    ticks += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);

  const facts = await reader.runs(new Set(rows.map(({ id }) => id)));

  isDone = true;
  expect(ticks).toBeGreaterThanOrEqual(RUNS - 1);
  expect(facts.size).toBe(RUNS);
  expect(facts.get('run_7')).toMatchObject({ metadata: { a: 1 }, inputViolation: { path: '/missing' } });
});
