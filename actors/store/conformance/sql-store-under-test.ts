import type { Database } from '#shared/storage/database.ts';
import { sqlRuntimeStore } from '../sql/sql-runtime-store.ts';
import { type OtherProcesses, PARTITIONS, type StoreUnderTest } from './store-under-test.ts';

/** @param database migrated and empty; closed with the store */
export async function sqlStoreUnderTest(database: Database): Promise<StoreUnderTest> {
  const store = sqlRuntimeStore(database);
  await store.partitions.initialise(PARTITIONS);
  return { store, others: othersOn(database), close: () => database.close() };
}

function othersOn(database: Database): OtherProcesses {
  const column = async <Value>(text: string, id: string) => {
    const { rows } = await database.query<{ value: Value }>(text, [id]);
    return rows.map(({ value }) => value);
  };
  return {
    async acceptRun({ id, partition, sessionId, createdAtMs, ephemeral = false }) {
      await database.query(
        `insert into runs (id, p, session_id, customer_id, ephemeral, routine_id, idempotency_key, bundle_hash, state, input, trace_id, timeout_ms, expires_at, created_at)
         values ($1, $2, $3, case when $5 then 'cus_' || $1 else 'cus' end, $5, 'routine', $1, 'b', 'accepted', '{"text":"input"}', 't', 60000, now(), $4)`,
        [id, partition, sessionId, new Date(createdAtMs), ephemeral],
      );
    },
    async claim(effectId) {
      const { rowCount } = await database.query('insert into claims (effect_id) values ($1) on conflict (effect_id) do nothing', [effectId]);
      return rowCount === 1;
    },
    async storeTools(hash, tools) {
      await database.query('insert into tool_lists (hash, tools) values ($1, $2)', [hash, JSON.stringify(tools)]);
    },
    async storeCustomer({ id, name, tags }) {
      await database.query('insert into customers (id, name, tags, created_at, updated_at) values ($1, $2, $3::text[], now(), now())', [id, name, tags]);
    },
    async storeValue(key, name, data) {
      await database.query('insert into variable_values (key, name, data, updated_at) values ($1, $2, $3::json, now())', [key, name, JSON.stringify(data)]);
    },
    async restore(partition, { owner, epoch, commitNo }) {
      await database.query('update parts set owner = $2, epoch = $3, commit_no = $4, machine_v = 0 where p = $1', [partition, owner, epoch, commitNo]);
    },
    async run(id) {
      const { rows } = await database.query<RunRow>('select state, output, error, started_at, completed_at from runs where id = $1', [id]);
      const [row] = rows;
      if (row === undefined) throw new Error(`there is no run ${id}`);
      const { state, output, error, started_at: startedAt, completed_at: completedAt } = row;
      return { state, output, error, startedAtMs: startedAt?.getTime() ?? null, completedAtMs: completedAt?.getTime() ?? null };
    },
    runCalls: (runId) => column<string>('select effect_id as value from run_calls where run_id = $1', runId),
    hasCustomer: async (id) => (await column('select 1 as value from customers where id = $1', id)).length > 0,
    labels: (sessionId) => column<string>('select label as value from session_labels where session_id = $1 order by label', sessionId),
    deliveryState: async (id) => (await column<string>('select state as value from deliveries where id = $1', id))[0] ?? null,
    deadLetters: (id) => column<string>('select source as value from dead_letters where id = $1', id),
  };
}

type Progress = Awaited<ReturnType<OtherProcesses['run']>>;

interface RunRow extends Pick<Progress, 'state' | 'output' | 'error'> {
  started_at: Date | null;
  completed_at: Date | null;
}
