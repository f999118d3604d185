import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LivingValue } from '../config/living.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Database, Queryable } from '../storage/database.ts';
import { openTestDatabase } from '../storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../telemetry/log.ts';
import { type CallerKey, hashOfSecret, refusalOf } from './caller-key.ts';
import { openKeyDirectory } from './open-key-directory.ts';

let real: Database;
beforeAll(async () => {
  real = await openTestDatabase();
});
afterAll(() => real?.close());
beforeEach(() => real.query('delete from router_keys'));

const HASH = hashOfSecret('sk-made-over-http');
const ofFile: CallerKey = {
  ...{ id: 'file', hash: hashOfSecret('sk-file'), label: 'file', isManagement: false, disabled: false, expiresAtMs: null, isOauth: false },
  ...{ limitNano: null, limitReset: null, rates: { requestsPerMinute: null, tokensPerMinute: null, callsAtOnce: null } },
};

async function insert(hash: string, fields: Record<string, unknown> = {}): Promise<void> {
  const row = { id: `key_${hash.slice(0, 8)}`, hash, name: 'a name', label: 'sk-sy-v1-abc...123', made_by: 'management', ...fields };
  const names = Object.keys(row);
  const places = names.map((_, index) => `$${index + 1}`).join(', ');
  await real.query(`insert into router_keys (${names.join(', ')}) values (${places})`, Object.values(row));
}

/** Counts statements; can fail or hang; the time is set by the test. */
function harness(limits: { maxWaiting?: number; timeoutMs?: number } = {}) {
  const state = { queries: [] as string[][], fault: null as Error | null, gate: null as Promise<void> | null, nowMs: 1_000 };
  const database: Queryable = {
    async query(statement, parameters = []) {
      state.queries.push(parameters[0] as string[]);
      const result = real.query<never>(statement, parameters);
      await Promise.all([result, state.gate]);
      if (state.fault !== null) throw state.fault;
      return result;
    },
  };
  const directory = openKeyDirectory({ fileKeys: new Map([[ofFile.hash, ofFile]]), database, log: silentLog, nowMs: () => state.nowMs, limits });
  return { state, directory };
}

function gate(): { opened: Promise<void>; open(): void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

const away = new SwitchyardError('service.unreachable', 'no connection');
const notReady = { code: 'service.not_ready', details: { retryAfterMs: 1_000 } };

describe('a key', () => {
  it('of the file costs no query and no promise', () => {
    const { state, directory } = harness();

    expect(directory.find(ofFile.hash)).toBe(ofFile);
    expect(state.queries).toEqual([]);
  });

  it('of a row is read with all its fields', async () => {
    await insert(HASH, {
      ...{ disabled: true, limit_nano: 2_500_000_000, limit_reset: 'monthly', expires_at: '2030-01-01T00:00:00Z', made_by: 'oauth' },
      ...{ requests_per_minute: 3, tokens_per_minute: 4, calls_at_once: 5 },
    });

    expect(await harness().directory.find(HASH)).toEqual({
      ...{ id: `key_${HASH.slice(0, 8)}`, hash: HASH, label: 'sk-sy-v1-abc...123', isManagement: false, disabled: true, isOauth: true },
      ...{ expiresAtMs: Date.UTC(2030, 0, 1), limitNano: 2_500_000_000, limitReset: 'monthly' },
      rates: { requestsPerMinute: 3, tokensPerMinute: 4, callsAtOnce: 5 },
    });
  });

  it('of a row is cached for ten seconds, without a promise, and then read again', async () => {
    await insert(HASH);
    const { state, directory } = harness();
    await directory.find(HASH);
    state.nowMs += 9_999;
    expect(directory.find(HASH)).toMatchObject({ hash: HASH });
    expect(state.queries).toHaveLength(1);

    await real.query('update router_keys set disabled = true');
    state.nowMs += 1;
    expect(await directory.find(HASH)).toMatchObject({ disabled: true });
    expect(state.queries).toHaveLength(2);
  });

  it('that was changed is read again at once after its notice', async () => {
    await insert(HASH);
    const { directory } = harness();
    await directory.find(HASH);
    await real.query('delete from router_keys');

    expect(directory.find(HASH)).toMatchObject({ hash: HASH });
    directory.forget(HASH);
    expect(await directory.find(HASH)).toBeNull();
  });

  it('that was changed while it was read is not cached as it was, and is read again for requests since', async () => {
    await insert(HASH);
    const { state, directory } = harness();
    const { opened, open } = gate();
    state.gate = opened;
    const before = directory.find(HASH);
    directory.forget(HASH);
    open();
    await before;
    expect(directory.find(HASH)).toBeInstanceOf(Promise);
    expect(state.queries).toHaveLength(2);

    const second = gate();
    state.gate = second.opened;
    directory.forget(HASH);
    const [read, since] = [directory.find(HASH), directory.find(HASH)];
    second.open();
    await Promise.all([read, since]);
    expect(state.queries).toHaveLength(3);
    expect(directory.find(HASH)).not.toBeInstanceOf(Promise);
  });

  it('that does not exist is null, costs one query a second, and is found once it was made', async () => {
    const { state, directory } = harness();
    expect(await directory.find(HASH)).toBeNull();
    expect(directory.find(HASH)).toBeNull();
    expect(state.queries).toHaveLength(1);
    await insert(HASH);

    directory.forget(HASH);
    expect(await directory.find(HASH)).toMatchObject({ hash: HASH });
    const another = hashOfSecret('sk-another');
    await directory.find(another);
    state.nowMs += 1_000;
    await insert(another);
    expect(await directory.find(another)).toMatchObject({ hash: another });
  });
});

describe('a flood of wrong keys', () => {
  const wrong = Array.from({ length: 500 }, (_, index) => hashOfSecret(`sk-wrong-${index}`));

  it('is one statement at a time', async () => {
    const { state, directory } = harness();

    expect(await Promise.all(wrong.map((hash) => directory.find(hash)))).toEqual(wrong.map(() => null));
    expect(state.queries.map((hashes) => hashes.length)).toEqual([1, 499]);
  });

  it('is refused beyond the limit, and a key of the file is not', async () => {
    const { state, directory } = harness({ maxWaiting: 10 });
    const { opened, open } = gate();
    state.gate = opened;
    const results = Promise.allSettled(wrong.map((hash) => directory.find(hash)));
    expect(directory.find(ofFile.hash)).toBe(ofFile);
    open();

    const refused = (await results).flatMap((result) => (result.status === 'rejected' ? [result.reason as SwitchyardError] : []));
    expect(refused).toHaveLength(wrong.length - 11);
    expect(refused[0]).toMatchObject({ code: 'service.overloaded', details: { retryAfterMs: 1_000 } });
  });

  it('displaces no cached row', async () => {
    await insert(HASH);
    const { directory } = harness();
    await directory.find(HASH);
    for (let round = 0; round < 21; round += 1) {
      await Promise.all(Array.from({ length: 500 }, (_, index) => directory.find(`${round}-${index}`)));
    }

    expect(directory.find(HASH)).toMatchObject({ hash: HASH });
  });
});

describe('while the database is away', () => {
  it('a cached row is served as long as it takes, without a promise, and a change is seen once it is back', async () => {
    await insert(HASH);
    const { state, directory } = harness();
    await directory.find(HASH);
    state.fault = away;
    state.nowMs += 10_000;
    // This look-up notices the loss.
    expect(await directory.find(HASH)).toMatchObject({ hash: HASH });
    state.nowMs += 3_600_000;
    expect(directory.find(HASH)).toMatchObject({ hash: HASH, disabled: false });

    await expect.poll(() => state.queries.length).toBe(3);
    await real.query('update router_keys set disabled = true');
    state.fault = null;
    state.nowMs += 1_000;
    await expect
      .poll(async () => {
        state.nowMs += 1_000;
        return directory.find(HASH);
      })
      .toMatchObject({ disabled: true });
  });

  it('a key that is not cached is refused with 503, never as wrong, and the database is tried once a second', async () => {
    const { state, directory } = harness();
    state.fault = away;
    for (let request = 0; request < 5; request += 1) await expect(directory.find(HASH)).rejects.toMatchObject(notReady);
    expect(state.queries).toHaveLength(1);
    state.nowMs += 1_000;
    await expect(directory.find(HASH)).rejects.toMatchObject(notReady);
    expect(state.queries).toHaveLength(2);

    state.fault = null;
    state.nowMs += 1_000;
    expect(await directory.find(HASH)).toBeNull();
  });

  it('and hangs, look-ups are refused within their time, and no second statement is sent until it answers', async () => {
    const { state, directory } = harness({ timeoutMs: 20 });
    const { opened, open } = gate();
    state.gate = opened;
    await expect(directory.find(HASH)).rejects.toMatchObject(notReady);
    state.nowMs += 5_000;
    await expect(directory.find(HASH)).rejects.toMatchObject(notReady);
    expect(state.queries).toHaveLength(1);

    open();
    open();
    await expect.poll(async () => directory.find(HASH)).toBeNull();
  });

  it('a key that was changed is not served as it was', async () => {
    await insert(HASH);
    const { state, directory } = harness();
    await directory.find(HASH);
    state.fault = away;
    directory.forget(HASH);

    await expect(directory.find(HASH)).rejects.toMatchObject(notReady);
  });
});

it('without a database only the keys of the file are known', () => {
  const directory = openKeyDirectory({ fileKeys: new Map([[ofFile.hash, ofFile]]), database: null, log: silentLog });

  expect(directory.find(ofFile.hash)).toBe(ofFile);
  expect(directory.find(HASH)).toBeNull();
});

it.each([
  [{}, null],
  [{ disabled: true, expiresAtMs: 1 }, 'disabled'],
  [{ expiresAtMs: 99 }, 'expired'],
  [{ expiresAtMs: 100 }, 'expired'],
  [{ expiresAtMs: 101 }, null],
  [{ expiresAtMs: 100, isOauth: true }, 'oauth-expired'],
] as const)('%j is refused as %s', (fields, refusal) => {
  expect(refusalOf({ ...ofFile, ...fields }, 100)).toBe(refusal);
});

it.each([
  ['with', true],
  ['without', false],
])('finds the keys of the file as they are now, %s a database', async (_, hasDatabase) => {
  const living = new LivingValue<ReadonlyMap<string, CallerKey>>(new Map([[ofFile.hash, ofFile]]));
  const directory = openKeyDirectory({ fileKeys: living, database: hasDatabase ? real : null, log: silentLog });
  expect(await directory.find(ofFile.hash)).toBe(ofFile);
  const disabled = { ...ofFile, disabled: true };
  living.replace(new Map([[ofFile.hash, disabled]]));
  expect(await directory.find(ofFile.hash)).toBe(disabled);
  living.replace(new Map());
  expect(await directory.find(ofFile.hash)).toBeNull();
});
