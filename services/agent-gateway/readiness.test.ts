import { afterEach, expect, it } from 'vitest';
import type { Queryable } from '#shared/storage/database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { waits } from './limits.ts';
import { ReadinessGate } from './readiness.ts';
import { until } from './test-support/until.ts';
import { watchedDatabase } from './watched-database.ts';

const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

const gates: ReadinessGate[] = [];
afterEach(() => {
  for (const gate of gates.splice(0)) gate.close();
});

function fixture() {
  const state = { answer: 'here' as 'here' | 'missing' | 'away' | 'never', asked: 0, returns: 0, isBusThere: true };
  const database: Queryable = {
    query: async () => {
      state.asked += 1;
      if (state.answer === 'away') throw away;
      if (state.answer === 'never') await new Promise(() => {});
      return { rows: [], rowCount: state.answer === 'here' ? 1 : 0 };
    },
  };
  const gate = new ReadinessGate(
    { bus: { isReady: () => state.isBusThere }, database, bundleHash: 'b', waits: { ...waits, bootCheckMs: 10, readinessMs: 30 }, log: silentLog },
    () => {
      state.returns += 1;
    },
  );
  gates.push(gate);
  return { gate, state, watched: watchedDatabase({ ...database, transaction }, () => gate.suspect()) };
}

const transaction = () => Promise.reject(new Error('no transaction is expected'));

it('is booting until the configuration is stored, whatever the database returns before', async () => {
  const { gate, state } = fixture();
  for (const answer of ['missing', 'away', 'never'] as const) {
    state.answer = answer;
    expect(await gate.admits()).toBe('booting');
  }

  state.answer = 'here';

  expect(await gate.admits()).toBe('ready');
  expect(state.returns).toBe(0);
});

it('resolves a wait once requests are admitted, and ends it by what its caller throws', async () => {
  const { gate, state } = fixture();
  state.answer = 'missing';
  let checks = 0;
  const assertWanted = () => {
    checks += 1;
    if (checks === 3) state.answer = 'here';
  };

  await gate.untilReady(assertWanted);

  expect(checks).toBe(3);
  expect(await gate.admits()).toBe('ready');

  const stopped = new Error('stopped');
  const waiting = fixture();
  waiting.state.answer = 'missing';
  await expect(
    waiting.gate.untilReady(() => {
      throw stopped;
    }),
  ).rejects.toBe(stopped);
});

it('resolves a wait when the gateway drains', async () => {
  const { gate, state } = fixture();
  state.answer = 'missing';
  await gate.untilReady(() => gate.drain());
  expect(gate.isDraining).toBe(true);
});

it('sends no query for a request once it has been ready', async () => {
  const { gate, state } = fixture();
  await gate.check();

  for (let n = 0; n < 10; n += 1) expect(await gate.admits()).toBe('ready');

  expect(state.asked).toBe(1);
});

it('refuses requests when a statement has shown that the database is away, and recovers by itself', async () => {
  const { gate, state, watched } = fixture();
  await gate.check();
  state.answer = 'away';

  await expect(watched.query('select 1')).rejects.toThrow('ECONNREFUSED');
  await until(async () => (await gate.admits()) === 'unavailable', 'refusals');
  state.answer = 'here';
  await until(async () => (await gate.admits()) === 'ready', 'readiness');

  expect(state.returns).toBe(1);
  const { asked } = state;
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(state.asked).toBe(asked); // it has stopped checking
});

it('refuses no request for one failed statement while the database is up, nor for a slow database', async () => {
  const { gate, state } = fixture();
  await gate.check();

  gate.suspect();
  expect(await gate.check()).toBe('ready');
  state.answer = 'never';
  gate.suspect();

  expect(await gate.check()).toBe('unavailable'); // for probes
  expect(await gate.admits()).toBe('ready');
});

it('is unavailable without the bus, and draining permanently once it stops', async () => {
  const { gate, state } = fixture();
  await gate.check();

  state.isBusThere = false;
  expect([await gate.admits(), await gate.check()]).toEqual(['unavailable', 'unavailable']);
  state.isBusThere = true;
  gate.drain();

  expect([await gate.admits(), await gate.check()]).toEqual(['draining', 'draining']);
});

it('does not read the error of one statement as a database that is away', async () => {
  let faults = 0;
  const wrong = Object.assign(new Error('syntax error'), { code: '42601' });
  const watched = watchedDatabase({ query: () => Promise.reject(wrong), transaction }, () => {
    faults += 1;
  });

  await expect(watched.query('selct')).rejects.toThrow('syntax error');
  expect(faults).toBe(0);
});
