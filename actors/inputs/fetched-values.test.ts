import { expect, it, vi } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { variableSet } from '#shared/contracts/documents/variable-set.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { staleVariables } from '../engine/variables/stale-variables.ts';
import type { StoredCustomer } from '../store/port/customer-store.ts';
import { CustomerReader } from './customer-reader.ts';
import { FetchedValues, type FetchRequest } from './fetched-values.ts';

const variables = [{ name: 'plan', tool_id: 'crm:plan', freshness: '0 * * * *' }, { name: 'since', tool_id: 'crm:since' }, { name: 'note' }];
const documents = {
  prompts: [],
  routines: [],
  policies: [],
  glossaries: [],
  macros: [],
  variable_sets: [variableSet.parse({ id: 'customer', version: 1, variables })],
};
const ada = { sessionId: 'ses_1', customerId: 'ada', bundleHash: 'b' };
const HOUR = 3_600_000;
const value = (name: string, data: unknown, updatedAtMs: number, key = 'ada') => ({ key, name, data, updatedAtMs });

it.each([
  ['none is stored', [], ['plan', 'since']],
  ['an hour has begun since', [value('plan', 'a', 0.5 * HOUR), value('since', 'a', 0)], ['plan']],
  ['no hour has begun since', [value('plan', 'a', 1.2 * HOUR), value('since', 'a', 0)], []],
  ['only another key has one', [value('plan', 'a', 1.2 * HOUR, 'DEFAULT'), value('since', 'a', 0)], ['plan']],
])('rule 96: a fetched value is stale when %s', (_, values, expected) => {
  const stale = staleVariables(documents, ['plan', 'since', 'note'], { customerId: 'ada', values, nowMs: 1.5 * HOUR });

  expect(stale.map(({ name }) => name)).toEqual(expected);
  expect(staleVariables(documents, ['note'], { customerId: 'ada', values: [], nowMs: 0 })).toEqual([]);
});

/** A store, and a worker that answers so. */
function deployment(answer: (request: FetchRequest, stored: StoredCustomer) => void, longestMs = 60_000) {
  const stored: StoredCustomer = { name: 'Ada', tags: [], values: [value('plan', 'old', 1), value('since', 2020, 1)] };
  const requests: FetchRequest[] = [];
  const fetch = async (request: FetchRequest) => {
    requests.push(request);
    answer(request, stored);
  };
  const read = async () => structuredClone(stored);
  const reader = () => new CustomerReader({ store: { read }, fetched, clock: systemClock, log: silentLog, longestMs });
  const fetched = new FetchedValues({ fetch, log: silentLog });
  return { requests, stored, reader: reader() };
}

it('rule 97: a stale value is fetched before the first prompt, once a turn', async () => {
  const { requests, reader } = deployment(({ name }, stored) => {
    setTimeout(() => {
      stored.values = [...stored.values.filter((one) => one.name !== name), value(name, 'new', Date.now())];
    }, 20);
  });
  const [first, second] = await Promise.all([reader.ofTurn('trn_1', ada, documents), reader.ofTurn('trn_1', ada, documents)]);

  expect([first.values.get('plan'), second.values.get('plan'), first.values.get('since')]).toEqual(['new', 'new', 2020]);
  expect(requests).toEqual([{ ...ada, turnId: 'trn_1', name: 'plan', type: 'string', toolId: 'crm:plan', writtenAtMs: 1 }]);
});

it('rule 98: what comes too late is stale in this turn, and is not waited for in the next ones', async () => {
  const { requests, reader, stored } = deployment(() => {}, 100);
  const known = await reader.ofTurn('trn_1', ada, documents);
  let isDone = false;
  const next = reader.ofTurn('trn_2', ada, documents).then((found) => {
    isDone = true;
    return found;
  });
  // Reads, no timers.
  for (let turns = 0; turns < 100 && !isDone; turns += 1) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));

  expect(known).toMatchObject({ name: 'Ada' });
  expect(known.values.get('plan')).toBe('old');
  expect(isDone).toBe(true);
  expect((await next).values.get('plan')).toBe('old');
  expect(requests).toHaveLength(2);
  stored.values = [value('plan', 'new', Date.now()), value('since', 1, 1)];
  expect((await reader.ofTurn('trn_3', ada, documents)).values.get('plan')).toBe('new');
});

it('rule 98: a tool that was late is waited for again after 30 s', async () => {
  let nowMs = 1_000;
  const fetched = new FetchedValues({ fetch: async () => {}, clock: { nowMs: () => nowMs }, log: silentLog });
  const request: FetchRequest = { ...ada, name: 'plan', type: 'string', toolId: 'crm:plan', writtenAtMs: null, turnId: 'trn_1' };
  const stored = { name: null, tags: [], values: [] };
  const waits = async () => {
    // Any look takes longer than the turn waits.
    const read = async () => {
      nowMs += 1_000;
      return stored;
    };
    return (await fetched.of([request], read, 500)) !== null;
  };
  expect(await waits()).toBe(true);
  const lateAtMs = nowMs;
  nowMs = lateAtMs + 29_999;
  expect(await waits()).toBe(false);
  nowMs = lateAtMs + 30_000;
  expect(await waits()).toBe(true);
});

it('rule 98: a value is waited for as long when the clock is set back by an hour meanwhile', async () => {
  let setBackMs = 0;
  const stored: StoredCustomer = { name: null, tags: [], values: [] };
  const clock = { nowMs: () => systemClock.nowMs() - setBackMs };
  const read = async () => {
    setBackMs = HOUR;
    return stored;
  };
  const waits: number[] = [];
  const own = new FetchedValues({ fetch: async () => {}, log: silentLog });
  const fetched: Pick<FetchedValues, 'of'> = {
    of: (requests, look, waitMs) => {
      waits.push(waitMs);
      return own.of(requests, look, waitMs);
    },
  };
  vi.spyOn(Date, 'now').mockImplementation(() => performance.timeOrigin + performance.now() - setBackMs);
  try {
    await new CustomerReader({ store: { read }, fetched, clock, log: silentLog, longestMs: 100 }).ofTurn('trn_1', ada, documents);
  } finally {
    vi.restoreAllMocks();
  }

  expect(waits).toHaveLength(1);
  expect(waits[0]).toBeLessThanOrEqual(100);
});

it('rule 98: a turn goes on when the value can not be requested', async () => {
  const { reader } = deployment(() => {
    throw new Error('no broker');
  }, 100);

  expect((await reader.ofTurn('trn_1', ada, documents)).values.get('plan')).toBe('old');
});

it('rule 97: a greeting waits for no tool', async () => {
  const { requests, reader } = deployment(() => {});

  expect((await reader.read(ada, ['plan'])).values.get('plan')).toBe('old');
  expect(requests).toEqual([]);
});
