import { runtimeStoreConformance } from '../../actors/store/conformance/runtime-store-conformance.ts';
import { type OtherProcesses, PARTITIONS, type StoreUnderTest } from '../../actors/store/conformance/store-under-test.ts';
import { ModelTables, type Row } from './model-rows.ts';
import { FULL_FENCE, modelStore } from './model-store.ts';

runtimeStoreConformance('the model of the store', async (): Promise<StoreUnderTest> => {
  const tables = new ModelTables();
  const model = { tables, nowMs: () => Date.now(), fence: FULL_FENCE };
  const store = modelStore(model, async (_call, execute) => execute());
  await store.partitions.initialise(PARTITIONS);
  return { store, others: othersOn(tables), close: async () => {} };
});

function othersOn(tables: ModelTables): OtherProcesses {
  return {
    async acceptRun({ id, partition, sessionId, createdAtMs, ephemeral = false }) {
      tables.runs.set(id, {
        ...{ id, p: partition, session_id: sessionId, customer_id: ephemeral ? `cus_${id}` : 'cus', ephemeral, routine_id: 'routine' },
        ...{
          bundle_hash: 'b',
          state: 'accepted',
          input: '{"text":"input"}',
          trace_id: 't',
          timeout_ms: 60_000,
          expires_at: new Date(),
          created_at: new Date(createdAtMs),
        },
        ...{ output: null, error: null, started_at: null, completed_at: null },
      });
    },
    async claim(effectId) {
      if (tables.claims.has(effectId)) return false;
      tables.claims.set(effectId, { effect_id: effectId, claimed_at: new Date(), withdrawn: false, claimant: null });
      return true;
    },
    async storeTools(hash, tools) {
      tables.toolLists.set(hash, { hash, tools: JSON.stringify(tools), created_at: new Date(), unused_since: null });
    },
    async storeCustomer({ id, name, tags }) {
      tables.customers.set(id, { id, name, tags });
    },
    async storeValue(key, name, data) {
      tables.variableValues.push({ key, name, data: JSON.stringify(data), updated_at: new Date() });
    },
    async restore(partition, { owner, epoch, commitNo }) {
      Object.assign(tables.parts.get(partition) as Row, { owner, epoch, commit_no: commitNo, machine_v: 0 });
    },
    async run(id) {
      const row = tables.runs.get(id) as Row;
      const [output, error] = [row['output'], row['error']].map((text) => (text === null ? null : JSON.parse(text as string)));
      const [startedAtMs, completedAtMs] = [row['started_at'], row['completed_at']].map((at) => (at as Date | null)?.getTime() ?? null);
      return { state: row['state'] as string, output, error, startedAtMs: startedAtMs ?? null, completedAtMs: completedAtMs ?? null };
    },
    runCalls: async (runId) => tables.runCalls.filter((row) => row['run_id'] === runId).map((row) => row['effect_id'] as string),
    hasCustomer: async (id) => tables.customers.has(id),
    labels: async (sessionId) =>
      tables.sessionLabels
        .filter((row) => row['session_id'] === sessionId)
        .map((row) => row['label'] as string)
        .sort(),
    deliveryState: async (id) => (tables.deliveries.get(id)?.[0]?.['state'] as string | undefined) ?? null,
    deadLetters: async (id) => tables.deadLetters.filter((row) => row['id'] === id).map((row) => row['source'] as string),
  };
}
