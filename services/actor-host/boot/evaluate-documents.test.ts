import { describe, expect, it } from 'vitest';
import { evaluationStore } from '#shared/config/evaluation-store.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import {
  base64Of,
  bundleOf,
  chat,
  comparedBundle,
  evaluationIn,
  migrated,
  modelOf,
  policies,
  type Question,
  routine,
  start,
} from '../test-support/evaluations.ts';

const nextTick = () => new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined)));
/** A statement of the embedded database takes one, and each question has some of its own. */
const manyTicks = async () => {
  for (let left = 50; left > 0; left -= 1) await nextTick();
  return undefined;
};

const count = async (database: Database, where = 'true') =>
  (await database.query<{ n: number }>(`select count(*)::int as n from evaluations where kind <> 'set' and ${where}`)).rows[0]?.n;

describe('the evaluation of documents', () => {
  it('stores what a model says of each step and policy, steps after those that follow them', async () => {
    const database = await migrated(openTestDatabase());
    const { asked, modelCalls } = modelOf();
    const bundle = bundleOf({ routines: [routine], policies });

    expect(await start(database, modelCalls).done).toBe(0);

    const nodes = (await evaluationIn(database, bundle))?.nodes;
    expect(nodes?.['people']).toEqual({
      internal_action: 'Ask for people. (alone)',
      customer_dependent_action_data: { is_customer_dependent: true, customer_action: 'known', agent_action: 'asks' },
      tool_running_only: false,
      follow_ups: [
        { condition: '[The step is completed]', path: ['time'] },
        { condition: '[The step is completed; and This has been done already: known; and The step is completed]', path: ['time', 'confirm'] },
      ],
    });
    expect(asked.filter(({ name }) => name === 'evaluate_node').map(({ text }) => /Ask for (\w+)\."\}/.exec(text)?.[1])).toEqual(['confirm', 'time', 'people']);
    expect(asked.filter(({ name }) => name === 'evaluate_policy')).toHaveLength(1);
    expect(await database.query(`select result->>'internalAction' as action from evaluations where kind = 'policy'`)).toMatchObject({
      rows: [{ action: 'ask where it leaks' }],
    });
  });

  it('asks nothing again after another start, and after a change only about what it touches', async () => {
    const database = await migrated(openTestDatabase());
    await start(database, modelOf().modelCalls).done;
    await database.query(`update evaluations set used_at = now() - interval '10 days'`);
    const again = modelOf();
    expect(await start(database, again.modelCalls).done).toBe(0);
    expect(again.asked).toEqual([]);
    expect(await count(database, `kind <> 'node' and used_at < now() - interval '1 day'`)).toBe(0);

    const changed = modelOf();
    const bundle = bundleOf({ routines: [{ ...routine, steps: [chat('people', 'Ask how many.'), chat('time'), chat('confirm')] }], policies });
    expect(await start(database, changed.modelCalls, { bundle }).done).toBe(0);
    expect(changed.asked).toHaveLength(1);
    expect((await evaluationIn(database, bundle))?.nodes['time']?.internal_action).toBe('Ask for time. (alone)');
  });

  it.each([1, 2, 50])('asks at most EVAL_NODE_PARALLELISM questions at once: %d', async (parallelism) => {
    const database = await migrated(openTestDatabase());
    const { modelCalls, most, asked } = modelOf({ onAsk: manyTicks });
    const steps = Array.from({ length: 12 }, (_, index) => chat(`s${index}`));
    const transitions = steps.map(({ id }) => ({ from: 'root', to: id, when: `It is ${id}` }));

    await start(database, modelCalls, { parallelism, bundle: bundleOf({ routines: [{ ...routine, steps, transitions }] }) }).done;

    expect(asked).toHaveLength(12);
    if (parallelism < 12) expect(most()).toBe(parallelism);
    else expect(most()).toBeGreaterThan(2);
  });

  it('asks the evaluation model, then its fallback; without one the same model again', async () => {
    const models = async (llms: object) => {
      const database = await migrated(openTestDatabase());
      const { asked, modelCalls } = modelOf({ onAsk: async () => 'no JSON' });
      const bundle = bundleOf({ policies }, llms);
      expect(await start(database, modelCalls, { bundle }).done).toBe(1);
      return asked.map(({ model }) => model);
    };
    expect(await models({ evaluation: 'a/eval', evaluation_fallback: 'a/second' })).toEqual(['a/eval', 'a/second']);
    expect(await models({ evaluation: 'a/eval' })).toEqual(['a/eval', 'a/eval']);
    expect(await models({})).toEqual(['a/main', 'a/main']);
  });

  it('stores a routine as failed when a step has no answer, and evaluates it in a later round with what was found', async () => {
    const database = await migrated(openTestDatabase());
    const bundle = bundleOf({ routines: [routine] });
    const failing = modelOf({
      onAsk: async ({ messages }) => {
        if (String(messages.at(-1)?.content).includes('"Ask for time."}')) throw new Error('no model');
        return undefined;
      },
    });
    expect(await start(database, failing.modelCalls, { bundle }).done).toBe(1);
    expect(await evaluationIn(database, bundle)).toBeNull();

    const { asked, modelCalls } = modelOf();
    let left = 2;
    const recovering = { ...modelCalls, ask: (question: Question) => (left-- > 0 ? Promise.reject(new Error('not yet')) : modelCalls.ask(question)) };
    expect(await start(database, recovering, { bundle, times: { retriesMs: [1, 1] } }).done).toBe(0);
    expect(asked).toHaveLength(2);
    expect((await evaluationIn(database, bundle))?.nodes['people']?.follow_ups).toHaveLength(2);
  });

  it('DESIGN 5: is done by one of the hosts that start together', async () => {
    const database = await migrated(openTestDatabase());
    const { asked, modelCalls } = modelOf({ onAsk: nextTick });

    const hosts = [1, 2, 3].map(() => start(database, modelCalls));

    expect(await Promise.all(hosts.map(({ done }) => done))).toEqual([0, 0, 0]);
    expect(asked).toHaveLength(4);
    expect(await count(database)).toBe(5);
    expect(await database.query(`select 1 from meta where key = 'document-evaluation'`)).toMatchObject({ rows: [] });
  });

  it('is taken over from a host that was killed, and what that one stores later changes nothing', async () => {
    const database = await migrated(openTestDatabase());
    let resume: (text: undefined) => void = () => {};
    const late = new Promise<undefined>((resolve) => {
      resume = resolve;
    });
    const paused = modelOf({ onAsk: () => late });
    const first = start(database, paused.modelCalls, { times: { leaseMs: 2_000_000 } });
    await expect.poll(() => paused.asked.length, { timeout: 60_000 }).toBe(2);
    await database.query(
      `update meta set value = json_build_object('sweep', 'dead', 'until', now() - interval '1 second')::text where key = 'document-evaluation'`,
    );

    const { asked, modelCalls } = modelOf();
    expect(await start(database, modelCalls).done).toBe(0);
    expect(asked).toHaveLength(4);
    const stored = await database.query('select hash, result::text as text from evaluations order by hash');
    resume(undefined);
    expect(await first.done).toBe(0);
    expect(await database.query('select hash, result::text as text from evaluations order by hash')).toEqual(stored);
  });

  it('goes on when the database was away', async () => {
    const database = await migrated(openTestDatabase());
    const faults = [new Error('connect ECONNREFUSED'), new Error('connect ECONNREFUSED')];
    const failing: Database = {
      ...database,
      query: async (statement, parameters) => {
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        return database.query(statement, parameters);
      },
    };
    const evaluation = start(failing, modelOf().modelCalls, { times: { retriesMs: [1, 1, 1] } });
    expect(await evaluation.done).toBe(0);
    expect(await count(database, 'result is not null')).toBe(5);
  });

  it('ends on a stop, with an open question, and stores no failure', async () => {
    const database = await migrated(openTestDatabase());
    let fail: (error: Error) => void = () => {};
    const open = new Promise<undefined>((_, reject) => {
      fail = reject;
    });
    const { asked, modelCalls } = modelOf({ onAsk: () => open });
    const evaluation = start(database, modelCalls, { times: { stopWithinMs: 10 } });
    await expect.poll(() => asked.length, { timeout: 60_000 }).toBe(2);
    await evaluation.stop();
    fail(new Error('the bus is closed'));
    expect(await evaluation.done).toBeNull();
    expect(await count(database)).toBe(0);
  });

  it('rules 14, 47: has vectors made of what messages are compared with, in batches, once for each content', async () => {
    const database = await migrated(openTestDatabase());
    const bundle = comparedBundle();
    const { embedded, modelCalls } = modelOf();
    expect(await start(database, modelCalls, { bundle }).done).toBe(0);
    expect(embedded.map(({ model, dimensions, texts }) => [model, dimensions, texts.length])).toEqual([
      ['a/vectors', 2, 32],
      ['a/vectors', 2, 28],
    ]);
    expect(await count(database, `kind = 'vectors' and result is not null`)).toBe(2);

    const again = modelOf();
    expect(await start(database, again.modelCalls, { bundle }).done).toBe(0);
    expect([again.embedded, again.asked]).toEqual([[], []]);
    // The second batch has another term.
    const changed = modelOf();
    expect(await start(database, changed.modelCalls, { bundle: comparedBundle(61) }).done).toBe(0);
    expect(changed.embedded.map(({ texts }) => texts.length)).toEqual([29]);
  });

  it.each<[string, () => Promise<string[]>]>([
    ['fails', async () => Promise.reject(new Error('no model'))],
    ['brings other dimensions', async () => Array.from({ length: 32 }, () => base64Of(1, 2, 3))],
    ['brings too few vectors', async () => [base64Of(1, 2)]],
    ['brings numbers that are none', async () => Array.from({ length: 32 }, () => base64Of(1, Number.NaN))],
  ])('rule 14: a call for vectors that %s is made once more, and then stored as failed; all else has its result', async (_, onEmbed) => {
    const database = await migrated(openTestDatabase());
    const bundle = comparedBundle(51, policies);
    const failing = modelOf({ onEmbed });
    expect(await start(database, failing.modelCalls, { bundle }).done).toBe(2);
    expect(failing.embedded).toHaveLength(4);
    expect(await count(database, `kind = 'vectors' and result is null`)).toBe(2);
    expect(await count(database, `kind = 'policy' and result is not null`)).toBe(1);
    expect(await start(database, modelOf().modelCalls, { bundle }).done).toBe(0);
    expect(await count(database, `kind = 'vectors' and result is null`)).toBe(0);
  });

  it('keeps from the sweep what has a result, where a model never gives vectors', async () => {
    const database = await migrated(openTestDatabase());
    const failing = modelOf({ onEmbed: async () => Promise.reject(new Error('no model')) });
    const bundle = comparedBundle(60, policies);
    expect(await start(database, failing.modelCalls, { bundle }).done).toBe(2);
    await database.query(`update evaluations set used_at = now() - interval '10 days'`);
    expect(await start(database, failing.modelCalls, { bundle }).done).toBe(2);
    const { rows } = await database.query<{ kind: string }>(`select kind from evaluations where result is not null and used_at > now() - interval '1 day'`);
    expect(rows.map(({ kind }) => kind).sort()).toEqual(['policy', 'set']);
  });

  it('keeps from the sweep what it uses, for as long as it runs, also after a renewal that failed', async () => {
    const database = await migrated(openTestDatabase());
    const stored = evaluationStore(database);
    const uses: boolean[] = [];
    const use: typeof stored.use = async (hashes) => {
      // After the round itself, the first renewal finds no database.
      uses.push(uses.length !== 1);
      if (uses.length === 2) throw new Error('the database is away');
      await stored.use(hashes);
    };
    const bundle = bundleOf({ routines: [routine], policies });
    await start(database, modelOf().modelCalls, { bundle }).done;
    await database.query(`update evaluations set used_at = now() - interval '10 days'`);
    const lines: string[] = [];
    const log = { ...silentLog, warn: (_: unknown, line?: string) => void lines.push(String(line)) };
    const running = start(database, modelOf().modelCalls, { bundle, store: { ...stored, use }, log, times: { renewMs: 20 } });
    expect(await running.done).toBe(0);
    await database.query(`update evaluations set used_at = now() - interval '10 days'`);

    await expect.poll(() => count(database, `kind <> 'node' and used_at > now() - interval '1 day'`), { timeout: 60_000 }).toBe(2);
    expect((await database.query(`select 1 from evaluations where kind = 'set' and used_at > now() - interval '1 day'`)).rowCount).toBe(1);
    expect(uses.slice(0, 3)).toEqual([true, false, true]);
    expect(lines).toEqual([expect.stringContaining('could not be renewed')]);
  });

  it('reads hashes and no results where all is evaluated', async () => {
    const database = await migrated(openTestDatabase());
    const bundle = comparedBundle();
    expect(await start(database, modelOf().modelCalls, { bundle }).done).toBe(0);
    const store = { ...evaluationStore(database), read: async () => Promise.reject(new Error('results were read')) };
    expect(await start(database, modelOf().modelCalls, { bundle, store }).done).toBe(0);
  });

  it('rule 14: names texts that are too many for vectors in memory, and makes none', async () => {
    const database = await migrated(openTestDatabase());
    const lines: string[] = [];
    const log = { ...silentLog, warn: (_: unknown, line?: string) => void lines.push(String(line)) };
    const { embedded, modelCalls } = modelOf();
    expect(await start(database, modelCalls, { bundle: comparedBundle(60, [], 1_000_000), log }).done).toBe(0);
    expect(embedded).toEqual([]);
    expect(lines).toEqual([expect.stringContaining('too many texts for vectors')]);
  });

  it('does nothing without documents to evaluate', async () => {
    const database = await migrated(openTestDatabase());
    expect(await start(database, modelOf().modelCalls, { bundle: bundleOf({}) }).done).toBe(0);
  });
});
