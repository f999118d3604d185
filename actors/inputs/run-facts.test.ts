import { expect, it } from 'vitest';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { EffectStore } from '../store/port/effect-store.ts';
import type { RunStore, StoredRun } from '../store/port/run-store.ts';
import { RunFactsReader } from './run-facts.ts';

const RUNS = 20;

it('lets the event loop go on between the large inputs of a batch', async () => {
  const input = JSON.stringify({ text: 'x'.repeat(300_000) });
  const fields = { sessionId: 'ses_1', customerId: 'c', ephemeral: true, routineId: 'r', bundleHash: 'h', metadata: '{"a":1}', callbackUrl: null };
  const times = { traceId: 't', traceparent: null, timeoutMs: 1_000, expiresAtMs: 2_000, createdAtMs: 1_000 };
  const stored: StoredRun[] = Array.from({ length: RUNS }, (_, index) => ({ id: `run_${index}`, input, ...fields, ...times }));
  const bundle = { body: { documents: { routines: [{ kind: 'autonomous', id: 'r', input_schema: { required: ['missing'] } }] } } } as unknown as Bundle;
  const store = { runs: { load: async () => stored } as unknown as RunStore, effects: {} as EffectStore };
  const reader = new RunFactsReader({ store, bundleOf: async () => bundle, log: silentLog });
  let ticks = 0;
  let isDone = false;
  const count = () => {
    ticks += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);

  const facts = await reader.runs(new Set(stored.map(({ id }) => id)));

  isDone = true;
  expect(ticks).toBeGreaterThanOrEqual(RUNS - 1);
  expect(facts.size).toBe(RUNS);
  expect(facts.get('run_7')).toMatchObject({ metadata: { a: 1 }, inputViolation: { path: '/missing' } });
});
