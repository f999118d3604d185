import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { UsageMessage } from '#bus/bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { lapseReservations } from './lapse-reservations.ts';
import { bookUsage } from './ledger.ts';
import { clearLedger, readRecordOf, reserve } from './test-support/usage-records.ts';

const SCENARIOS = 25;
const CALLS = 12;
const RESERVED_NANO = 1_000;
const KEYS = ['key-a', 'key-b', 'key-c'];

type Step =
  | { do: 'end'; call: number; again: boolean }
  | { do: 'deliver'; count: number; from: number; fate: 'accepted' | 'killed before' | 'killed after' | 'rejected' }
  | { do: 'lapse' };

const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('end' as const), call: fc.nat(CALLS - 1), again: fc.boolean() }),
    fc.record({
      do: fc.constant('deliver' as const),
      count: fc.integer({ min: 1, max: 6 }),
      from: fc.nat(CALLS),
      fate: fc.constantFrom('accepted', 'killed before', 'killed after', 'rejected'),
    }),
    fc.record({ do: fc.constant('lapse' as const) }),
  ) satisfies fc.Arbitrary<Step>,
  { minLength: 10, maxLength: 30 },
);

/** What a test plants: an ack before the commit, or a ledger that does not know what it has. */
type Planted = 'nothing' | 'a record lost' | 'a record twice';

interface Stored extends UsageMessage {
  storedAtMs: number;
}

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database?.close());

/** The log of a broker, its consumers, and the ledger under test. Even calls have reservations; of these every second one is over. */
class Scenario {
  readonly #planted: Planted;
  #log: Stored[] = [];
  readonly #ended = new Set<number>();

  constructor(planted: Planted) {
    this.#planted = planted;
  }

  async begin(): Promise<void> {
    await clearLedger(database);
    for (let call = 0; call < CALLS; call += 2) await reserve(database, `gen-${call}`, keyOf(call), RESERVED_NANO, call % 4 === 0 ? -1_000 : 3_600_000);
  }

  async do(step: Step): Promise<void> {
    if (step.do === 'end') this.#end(step.call, step.again);
    else if (step.do === 'lapse') await this.#lapse();
    else await this.#deliver(step);
    await checkReserved();
  }

  /** Everything comes to its end: the log is consumed, and the time of all dead calls is over. */
  async end(): Promise<void> {
    await this.#deliver({ count: Number.MAX_SAFE_INTEGER, from: 0, fate: 'accepted' });
    await database.query(`update reservations set until = now() - interval '1 second'`);
    await this.#lapse();
    await checkReserved();
    const { rows: calls } = await database.query<{ id: string }>('select generation_id as id from usage_ledger');
    expect(calls.map(({ id }) => id).sort()).toEqual([...this.#ended].map((call) => `gen-${call}`).sort());
    expect((await database.query('select 1 as one from reservations')).rows).toEqual([]);
    for (const key of KEYS) {
      const spent = [...this.#ended].reduce((sum, call) => sum + (keyOf(call) === key ? costOf(call) : 0), 0);
      const { rows } = await database.query<{ total_nano: number; day_nano: number }>('select total_nano, day_nano from key_spend where key_id = $1', [key]);
      expect(rows[0] ?? { total_nano: 0, day_nano: 0 }).toEqual({ total_nano: spent, day_nano: spent });
    }
  }

  /** Its record is stored a minute before its reservation's end, and again when the ack was lost. */
  #end(call: number, again: boolean): void {
    if (this.#ended.has(call) && !again) return;
    this.#ended.add(call);
    const { body } = readRecordOf(`gen-${call}`, { keyId: keyOf(call), costNano: costOf(call), reserved: call % 2 === 0 });
    this.#log.push({ messageId: `gen-${call}`, body, storedAtMs: Date.now() - 60_000 });
  }

  async #deliver({ count, from, fate }: Omit<Extract<Step, { do: 'deliver' }>, 'do'>): Promise<void> {
    const batch = this.#log.slice(from % Math.max(1, this.#log.length)).slice(0, count);
    if (fate === 'accepted' || fate === 'killed after') await this.#book(batch);
    const isAcked = fate === 'accepted' || (this.#planted === 'a record lost' && fate === 'rejected');
    if (isAcked) this.#log = this.#log.filter((record) => !batch.includes(record));
  }

  async #book(batch: readonly Stored[]): Promise<void> {
    const ids = batch.map(({ messageId }) => messageId);
    if (this.#planted === 'a record twice') await database.query('delete from usage_ledger where generation_id = any($1::text[])', [ids]);
    await bookUsage(batch, { database, log: silentLog, metrics: noMetrics });
  }

  async #lapse(): Promise<void> {
    const waiting = this.#log.map(({ messageId }) => messageId);
    const held = 'select count(*)::int as held from reservations where call_id = any($1::text[])';
    const heldBefore = (await database.query<{ held: number }>(held, [waiting])).rows;
    const oldestAtMs = this.#log.length === 0 ? null : Math.min(...this.#log.map(({ storedAtMs }) => storedAtMs));
    await lapseReservations({ database, usage: { backlog: async () => ({ records: this.#log.length, oldestAtMs }) }, clock: systemClock });
    expect((await database.query<{ held: number }>(held, [waiting])).rows, 'a late record finds its room').toEqual(heldBefore);
  }
}

const keyOf = (call: number) => KEYS[call % KEYS.length] ?? '';
const costOf = (call: number) => 10 ** (call % 9);

async function checkReserved(): Promise<void> {
  const { rows } = await database.query(
    `select key_id from key_spend where reserved_nano <> coalesce((select sum(amount_nano) from reservations where reservations.key_id = key_spend.key_id), 0)`,
  );
  expect(rows, 'what a key has reserved is the sum of its reservations').toEqual([]);
}

function run(planted: Planted): Promise<void> {
  const scenario = fc.asyncProperty(steps, async (sequence) => {
    const one = new Scenario(planted);
    await one.begin();
    for (const step of sequence) await one.do(step);
    await one.end();
  });
  return fc.assert(scenario, { numRuns: SCENARIOS, endOnFailure: true });
}

describe('the ledger, whatever happens to its writers', () => {
  it('has one row per ended call, bills each once, and leaves no reservation', () => run('nothing'), 60_000);

  it.each(['a record lost', 'a record twice'] as const)(
    'is found wrong by these checks with %s',
    async (planted) => {
      await expect(run(planted)).rejects.toThrow(/Property failed/);
    },
    60_000,
  );
});
