import { afterAll, beforeAll, expect, it } from 'vitest';
import { FIND_INTERIM, OVERDUE_INTERIM, WRITE_INTERIM } from '../../../services/router-worker/interim/interim-sql.ts';
import { LAPSE_RESERVATIONS, WRITE_RECORDS } from '../../../services/router-worker/ledger/ledger-sql.ts';
import { beginSpend, releaseCalls, reserveCalls, reserveTogether } from '../../../shared/credit/reservation-statements.ts';
import type { Database, NamedStatement } from '../../../shared/storage/database.ts';
import { openTestDatabase } from '../../../shared/storage/pglite/test-support/open-test-database.ts';
import { type Chance, chanceOf } from '../random.ts';
import { EPOCH_MS } from '../scheduler.ts';
import { simulateClock } from '../simulated-clock.ts';
import { LedgerTables } from './ledger-tables.ts';

const STATEMENTS = 550;
/** Rows are compared after each so many. */
const COMPARED_EVERY = 10;
const KEYS = ['a', 'b', 'c'];
const HOUR_MS = 3_600_000;

let database: Database;
let setClock: (nowMs: number) => Promise<void>;
beforeAll(async () => {
  database = await openTestDatabase();
  setClock = await simulateClock(database);
});
afterAll(() => database.close());

it('the model of the ledger answers each statement as PostgreSQL does, and leaves the same rows', async () => {
  const tables = new LedgerTables();
  const chance = chanceOf(7);
  let nowMs = EPOCH_MS;
  for (let number = 1; number <= STATEMENTS; number += 1) {
    nowMs += chance.pick([0, 0, 1_000, HOUR_MS, 20 * HOUR_MS, 200 * HOUR_MS]);
    await setClock(nowMs);
    const [statement, parameters] = statementOf(chance, { number, nowMs });
    const { rows } = await database.query(statement, parameters);
    const about = `${number}: ${statement.name} ${JSON.stringify(parameters)}`;
    const found = tables.execute(statement.name, parameters, nowMs);
    if (statement !== beginSpend && statement !== releaseCalls) expect(sorted(statement, found), about).toEqual(sorted(statement, rows));
    if (number % COMPARED_EVERY === 0) expect(rowsOf(tables), about).toEqual(await rowsIn(database));
  }
  expect(tables.ledger.size).toBeGreaterThan(50);
  expect(tables.lapsed.length).toBeGreaterThan(10);
  expect(tables.interims.size).toBeGreaterThan(10);
}, 120_000);

/** Calls of all keys, most of which are named several times. */
function statementOf(chance: Chance, { number, nowMs }: { number: number; nowMs: number }): [NamedStatement, unknown[]] {
  const some = Array.from({ length: 1 + chance.below(4) }, () => 1 + Math.max(0, number - chance.below(30)));
  const ids = [...new Set(some)].map((call) => `call-${call}`);
  const keys = ids.map((id) => KEYS[Number(id.slice(5)) % KEYS.length] as string);
  const amounts = ids.map(() => 10 * (1 + chance.below(5)));
  switch (chance.below(11)) {
    case 0:
      return [beginSpend, [KEYS.slice(0, 1 + chance.below(3))]];
    case 1:
    case 2: {
      // Ends differ, so that the first of them are the same in both.
      const lefts = ids.map((_, index) => chance.pick([2_000, 2 * HOUR_MS, 90 * HOUR_MS]) + 10 * number + index);
      const limits = ids.map(() => chance.pick([0, 60, 200, 100_000]));
      return [reserveCalls, [ids, keys, amounts, limits, ids.map(() => chance.pick(['', 'daily', 'weekly', 'monthly'])), lefts]];
    }
    case 3:
      return [releaseCalls, [ids, keys]];
    case 4:
    case 5: {
      // A record that was delivered twice may be in one batch twice.
      const calls = ids.flatMap((id, index) => Array.from({ length: chance.oneIn(5) ? 2 : 1 }, () => ({ id, key: keys[index], amount: amounts[index] ?? 0 })));
      const createdAts = calls.map(() => nowMs - chance.pick([0, HOUR_MS, 30 * HOUR_MS, 300 * HOUR_MS, -HOUR_MS]));
      const [zeros, models, records] = [calls.map(() => 0), calls.map(() => null), calls.map(() => '{}').join('\n')];
      const [generations, charged] = [calls.map(({ id }) => id), calls.map(({ key }) => key)];
      const costs = calls.map(({ amount }) => (chance.oneIn(3) ? 0 : amount));
      return [WRITE_RECORDS, [generations, charged, createdAts, models, models, zeros, zeros, zeros, costs, records, calls.map(() => chance.oneIn(2))]];
    }
    case 6:
      return [WRITE_INTERIM, [[...ids].sort(), ids.map((_, index) => `{"at":${nowMs + index}}`).join('\n'), chance.pick([1_000, HOUR_MS])]];
    case 7:
      return [FIND_INTERIM, [ids[0]]];
    case 8:
      return [OVERDUE_INTERIM, [nowMs - chance.pick([0, HOUR_MS]), 1 + chance.below(3)]];
    case 9: {
      const lefts = ids.map((_, index) => chance.pick([2_000, 2 * HOUR_MS, 90 * HOUR_MS]) + 10 * number + index);
      const sum = amounts.reduce((all, amount) => all + amount, 0);
      return [reserveTogether, [keys[0], ids, amounts, lefts, sum, chance.pick([0, 200, 1_000, 100_000]), chance.pick(['', 'daily', 'weekly', 'monthly'])]];
    }
    default:
      return [LAPSE_RESERVATIONS, [nowMs - chance.pick([0, HOUR_MS]), 1 + chance.below(3)]];
  }
}

/** The rows of a lapse have no order. */
function sorted(statement: NamedStatement, rows: readonly object[]): string[] | readonly object[] {
  return statement === LAPSE_RESERVATIONS ? rows.map((row) => JSON.stringify(row)).sort() : rows;
}

function rowsOf({ spend, reservations, ledger, interims }: LedgerTables) {
  return {
    spend: byText([...spend.values()]),
    reservations: byText([...reservations.values()].map(({ call_id, key_id, amount_nano, untilMs }) => ({ call_id, key_id, amount_nano, until_ms: untilMs }))),
    ledger: byText(
      [...ledger.values()].flat().map(({ generation_id, key_id, cost_nano, createdAtMs }) => ({ generation_id, key_id, cost_nano, at_ms: createdAtMs })),
    ),
    interims: byText([...interims.values()].map(({ generation_id, record, untilMs }) => ({ generation_id, record, until_ms: untilMs }))),
  };
}

async function rowsIn(real: Database): Promise<ReturnType<typeof rowsOf>> {
  const dates = ['day', 'week', 'month'].map((window) => `${window}::text, ${window}_nano`).join(', ');
  const spend = await real.query(`select key_id, total_nano, ${dates}, reserved_nano from key_spend`);
  const until = 'round(extract(epoch from until) * 1000)::float8 as until_ms';
  const reservations = await real.query(`select call_id, key_id, amount_nano, ${until} from reservations`);
  const at = 'round(extract(epoch from created_at) * 1000)::float8 as at_ms';
  const ledger = await real.query(`select generation_id, key_id, cost_nano, ${at} from usage_ledger`);
  const interims = await real.query(`select generation_id, record::text as record, ${until} from interim_records`);
  return { spend: byText(spend.rows), reservations: byText(reservations.rows), ledger: byText(ledger.rows), interims: byText(interims.rows) };
}

function byText(rows: readonly object[]): string[] {
  return rows.map((row) => JSON.stringify(row)).sort();
}
