import { expect, it } from 'vitest';
import { engineDocumentsOf } from '#actors/engine/engine-documents.ts';
import { routineKey } from '#actors/engine/evaluation/evaluation-keys.ts';
import { documentKeys, setKeyOf } from '#actors/engine/evaluation/evaluation-set.ts';
import { EvaluationsReader } from '#actors/inputs/evaluations-reader.ts';
import { systemClock } from '#shared/clock.ts';
import { evaluationStore } from '#shared/config/evaluation-store.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { base64Of, bundleOf, comparedBundle, evaluationIn, migrated, modelOf, policies, routine, start } from '../test-support/evaluations.ts';

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
  // Set back: it is looked up again.
  nowMs -= 3_600_000;
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

it.each([
  ['', 64 * 1024],
  // Of the first batch 256 bytes, of the second 224.
  [', also where the cache for several bundles has no memory for all', 300],
])('rules 14, 49: has vectors once all of a kind are there, the same for each set, and reads them once%s', async (_, maxVectorBytes) => {
  const database = await migrated(openTestDatabase());
  const bundle = comparedBundle(60, policies);
  const { store, reads } = countedStore(database);
  const reader = new EvaluationsReader({ store, clock: { ...systemClock, nowMs: () => 0 }, maxVectorBytes });
  const failing = modelOf({ onAsk: async () => 'no JSON' });
  expect(await start(database, failing.modelCalls, { bundle }).done).toBe(1);
  const first = await store.newestSet(setKeyOf(documentKeys(bundle.body)));
  const documents = engineDocumentsOf(bundle.body, await reader.read(bundle, first));
  expect(documents?.likeness).toMatchObject({ dimensions: 2, routines: null, terms: { parts: [{ length: 64 }, { length: 56 }] } });
  expect(documents?.likeness?.terms?.parts[1]?.[0]).toBeCloseTo('name32\nd'.length / Math.hypot('name32\nd'.length, 1));

  expect(await start(database, modelOf().modelCalls, { bundle }).done).toBe(0);
  const second = await store.newestSet(setKeyOf(documentKeys(bundle.body)));
  expect(second).not.toBe(first);
  const later = engineDocumentsOf(bundle.body, await reader.read(bundle, second));
  expect(later?.likeness?.terms?.parts[0]).toBe(documents?.likeness?.terms?.parts[0]);
  // By both sets: their own rows, then the vectors of the first, and the policy of the second.
  expect(reads).toEqual([1, 2, 1, 1]);
});

it('rule 49: has what earlier starts have found while vectors of a changed text are made', async () => {
  const database = await migrated(openTestDatabase());
  const before = comparedBundle(60, policies);
  expect(await start(database, modelOf().modelCalls, { bundle: before }).done).toBe(0);
  const changed = comparedBundle(61, policies);
  const [leak] = changed.body.documents.policies;
  if (leak === undefined) throw new Error('the bundle lacks a policy');
  let resume: (vectors: string[]) => void = () => {};
  const late = new Promise<string[]>((resolve) => {
    resume = resolve;
  });
  const { embedded, modelCalls } = modelOf({ onEmbed: () => late });
  const evaluation = start(database, modelCalls, { bundle: changed });
  await expect.poll(() => embedded.length, { timeout: 60_000 }).toBe(1);

  const reader = new EvaluationsReader({ store: evaluationStore(database), clock: systemClock });
  const found = await reader.read(changed, await reader.newestSet(changed));
  expect(found.policyOf(leak)).toMatchObject({ internalAction: 'ask where it leaks' });
  expect(engineDocumentsOf(changed.body, found)?.likeness).toBeNull();
  resume(Array.from({ length: 29 }, () => base64Of(1, 1)));
  expect(await evaluation.done).toBe(0);

  const store = evaluationStore(database);
  const tablesOf = async (bundle: typeof changed) =>
    engineDocumentsOf(bundle.body, await reader.read(bundle, await store.newestSet(setKeyOf(documentKeys(bundle.body)))))?.likeness?.terms?.parts;
  const [first, second] = [await tablesOf(before), await tablesOf(changed)];
  expect(second?.map(({ length }) => length)).toEqual([64, 58]);
  // Bundles share the vectors of texts that they have in common.
  expect(second?.[0]).toBe(first?.[0]);
});

it('rule 14: a set in which vectors of a batch can not be read has none of its kind', async () => {
  const database = await migrated(openTestDatabase());
  const bundle = comparedBundle();
  expect(await start(database, modelOf().modelCalls, { bundle }).done).toBe(0);
  const set = await evaluationStore(database).newestSet(setKeyOf(documentKeys(bundle.body)));
  await database.query(`update evaluations set result = $1 where hash = $2`, [JSON.stringify({ vectors: base64Of(1) }), documentKeys(bundle.body)[0]]);
  const reader = new EvaluationsReader({ store: evaluationStore(database), clock: systemClock });
  expect(engineDocumentsOf(bundle.body, await reader.read(bundle, set))?.likeness).toBeNull();
});

/** Counts the rows that are asked for. */
function countedStore(database: Database) {
  const store = evaluationStore(database);
  const reads: number[] = [];
  const read: typeof store.read = async (hashes) => {
    reads.push(hashes.length);
    return store.read(hashes);
  };
  return { store: { ...store, read }, reads };
}
