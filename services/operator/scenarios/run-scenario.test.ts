import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { openModels } from '../conversation/open-models.ts';
import { loadAgent } from '../load-agent.ts';
import { folderWith, SHOP } from '../test-support/agent-folder.ts';
import { runScenario } from './run-scenario.ts';
import { scenario } from './scenario.ts';

const START_MS = Date.UTC(2026, 0, 1);

/** Plays a scenario of the shop's agent with the scripted model, and returns the texts of each call's prompt too. */
async function play(given: object, override: (call: RouterCall) => object | null = () => null, files: object = {}) {
  const manifest = join(await folderWith({ ...SHOP, ...files }), 'manifest.yaml');
  const { bundle } = await loadAgent({ manifest, documents: null }, {});
  const { calls } = await openModels(bundle.body.manifest, manifest, { environment: {}, log: silentLog });
  const prompts: string[] = [];
  const execute = async (call: RouterCall) => {
    prompts.push(call.request.messages.map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content))).join('\n'));
    return (override(call) as Awaited<ReturnType<typeof calls.execute>> | null) ?? (await calls.execute(call));
  };
  const parsed = scenario.parse({ title: 'One', ...given });
  const report = await runScenario({ file: 'one.yaml', scenario: parsed }, { bundle, models: { execute }, nowMs: START_MS });
  await calls.close();
  return { report, prompts };
}

function withSearch(search: object): object {
  const { agent_config: config, ...about } = SHOP['manifest.yaml'];
  return { 'manifest.yaml': { ...about, agent_config: { ...config, search } } };
}

const tools = { 'shop:order': { input_schema: { type: 'object', properties: { id: { type: 'integer' } } }, answers: [{ result: { state: 'in Oslo' } }] } };

it('shows results of tools to the model, in their turn and in later ones', async () => {
  const { prompts } = await play({ tools, turns: [{ customer: 'Where is the order 4711?' }, { customer: 'Thanks' }] });

  expect(prompts[0]).not.toContain('in Oslo');
  expect(prompts.filter((prompt) => prompt.includes('in Oslo')).length).toBeGreaterThanOrEqual(2);
});

const SERVICE = { type: 'external', hostname: 'localhost', port: 1, path: '/search' };
const TABLE = {
  ...{ type: 'pgvector', hostname: 'localhost', port: 1, password: '${SEARCH_PASSWORD}', collection: 'documents' },
  ...{ embedding_model: 'openai/text-embedding-3-small', embedding_dimensions: 2 },
};

it.each([
  ['a service', SERVICE],
  ['a table', TABLE],
])('rule 74: shows the reply what its search finds, by the first entry that fits: at %s', async (_, stated) => {
  const search = [
    { query: 'OPENING', documents: [{ content: 'We open at nine.', title: 'Hours' }] },
    { query: 'warranty', documents: [{ content: 'Two years of warranty.' }] },
  ];
  const { report, prompts } = await play(
    { search, turns: [{ customer: 'What are your opening hours?' }, { customer: 'Bye' }] },
    () => null,
    withSearch(stated),
  );

  expect(report).toMatchObject({ hasPassed: true, fault: null });
  const found = prompts.filter((prompt) => prompt.includes('"content":"We open at nine."'));
  expect([found.length, found[0]?.includes('Hours'), prompts.some((prompt) => prompt.includes('Two years'))]).toEqual([1, true, false]);
});

it('rule 74: has the scripted model reply with what was found, and with what tools have answered', async () => {
  const search = [{ query: 'opening', documents: [{ content: 'We open at nine.', title: 'Hours' }] }];
  const turns = [
    { customer: 'What are your opening hours?', expect: { reply: { contains: ['open at nine'] } } },
    { customer: 'Where is the order 4711?', expect: { reply: { contains: ['Oslo'], does_not_contain: ['nine'] } } },
  ];
  const { report } = await play({ search, tools, turns }, () => null, withSearch(SERVICE));

  expect(report.turns.flatMap(({ mismatches }) => mismatches)).toEqual([]);
  expect(report.hasPassed).toBe(true);
});

it('has no documents where the scenario says nothing of searches', async () => {
  const { report } = await play({ turns: [{ customer: 'What are your opening hours?' }] }, () => null, withSearch(TABLE));

  expect(report).toMatchObject({ hasPassed: true, fault: null });
});

it('has the customer that it names', async () => {
  const { prompts } = await play({ customer: { name: 'Ada Byron' }, turns: [{ customer: 'Hello' }] });

  expect(prompts.at(-1)).toContain('Ada Byron');
});

it('fails where the model fails, with the reason', async () => {
  const failure = { code: 'router.provider_unavailable', message: 'away', details: {} };
  const { report } = await play({ turns: [{ customer: 'Hello' }] }, () => ({ type: 'failed', failure }));

  expect(report).toMatchObject({ hasPassed: false, fault: null });
  expect(report.turns[0]?.mismatches[0]?.actual).toContain('engine_error: the model call failed (router.provider_unavailable)');
});

it('may expect that', async () => {
  const failure = { code: 'router.provider_unavailable', message: 'away', details: {} };
  const { report } = await play({ turns: [{ customer: 'Hello', expect: { outcome: 'failed' } }] }, () => ({ type: 'failed', failure }));

  expect(report.hasPassed).toBe(true);
});

it('reports a fault in place of the turns that follow it', async () => {
  let calls = 0;
  const { report } = await play({ turns: [{ customer: 'Hello' }, { customer: 'Hello?' }] }, () => {
    calls += 1;
    if (calls > 3) throw new TypeError('a bug');
    return null;
  });

  expect(report).toMatchObject({ hasPassed: false, fault: 'a bug' });
  expect(report.turns.length).toBeLessThan(2);
});
