import { expect, it } from 'vitest';
import { routineKey } from '#actors/engine/evaluation/evaluation-keys.ts';
import { EvaluationsReader } from '#actors/inputs/evaluations-reader.ts';
import { systemClock } from '#shared/clock.ts';
import { evaluationStore } from '#shared/config/evaluation-store.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { bundleOf, evaluationIn, migrated, modelOf, policies, routine, start } from '../test-support/evaluations.ts';

it('names what the documents have by then, for turns that begin: without what has failed, and again when that is found', async () => {
  const database = await migrated(openTestDatabase());
  const bundle = bundleOf({ routines: [routine], policies });
  let nowMs = 0;
  const reader = new EvaluationsReader({ store: evaluationStore(database), clock: { ...systemClock, nowMs: () => nowMs } });
  const [document] = bundle.body.documents.routines;
  const [leak] = bundle.body.documents.policies;
  if (document === undefined || leak === undefined) throw new Error('the bundle lacks documents');
  expect(await reader.newestSet(bundle)).toBeNull();
  expect((await reader.read(bundle, null)).routineOf(document)).toBeNull();

  const failing = modelOf({ onAsk: async ({ messages }) => (String(messages.at(-1)?.content).includes('Ask for') ? 'no JSON' : undefined) });
  expect(await start(database, failing.modelCalls, { bundle }).done).toBe(1);
  expect(await reader.newestSet(bundle)).toBeNull();
  nowMs += 10_000;
  const first = await reader.newestSet(bundle);
  expect(first).not.toBeNull();
  const policy = { continuous: false, customerDependent: true, agentIntentionCondition: null, internalAction: 'ask where it leaks' };
  expect((await reader.read(bundle, first)).policyOf(leak)).toEqual(policy);
  expect((await reader.read(bundle, first)).routineOf(document)).toBeNull();

  expect(await start(database, modelOf().modelCalls, { bundle }).done).toBe(0);
  nowMs += 10_000;
  const second = await reader.newestSet(bundle);
  const found = await reader.read(bundle, second);
  expect(found.routineOf(document)).toEqual({ hash: routineKey(document, 'a/main'), value: await evaluationIn(database, bundle) });
  expect([found.set, found.policyOf(leak)]).toEqual([second, policy]);
  // A turn that began with the first set goes on with it.
  const other = new EvaluationsReader({ store: evaluationStore(database), clock: systemClock });
  expect((await other.read(bundle, first)).routineOf(document)).toBeNull();
  expect(await other.newestSet(bundle)).toBe(second);

  await start(database, modelOf().modelCalls, { bundle }).done;
  expect(await database.query(`select 1 from evaluations where kind = 'set'`)).toMatchObject({ rowCount: 2 });
});
