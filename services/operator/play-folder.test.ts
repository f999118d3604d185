import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { playFolder } from './play-folder.ts';
import { folderWith, SHOP } from './test-support/agent-folder.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples/acme-support/scenarios', import.meta.url));

async function test(folder: string, { json = false } = {}) {
  const lines: string[] = [];
  const shown: string[] = [];
  const deps = { environment: {}, print: (line: string) => lines.push(line), progress: (text: string) => shown.push(text), clock: systemClock, log: silentLog };
  const failure = await playFolder({ folder, manifest: null, documents: null, json }, deps).then(
    () => null,
    (error: unknown) => error as Error,
  );
  return { lines, shown, text: lines.join('\n'), failure };
}

/** Plays one scenario of the shop's agent. */
async function testShop(scenario: object, options: { json?: boolean } = {}) {
  const folder = await folderWith({ ...SHOP, 'scenarios/one.json': { title: 'One', ...scenario } });
  return test(join(folder, 'scenarios'), options);
}

const ORDER = {
  input_schema: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
  answers: [{ result: { state: 'shipped to Oslo' } }],
};
const customer = 'Where is the order 4711?';

describe('the scenarios of the sample agent', () => {
  it('pass with the scripted model, without any setting', async () => {
    const { lines, shown, failure } = await test(EXAMPLES);

    expect(lines.filter((line) => line.startsWith('FAILED') || line.startsWith('  '))).toEqual([]);
    expect(lines.at(-1)).toMatch(/^10 scenarios: 10 passed, 0 failed\. Answered by the scripted model/);
    expect([shown.length, shown[0]]).toEqual([10, 'playing scenario 1 of 10']);
    expect(failure).toBeNull();
  });
});

describe('a scenario', () => {
  it('answers the tools that are called', async () => {
    const expected = {
      policies: { apply: ['order-status'], do_not_apply: ['complaints'] },
      tools: { called: ['shop:order'] },
      questions: [],
    };
    const { text, failure } = await testShop({ tools: { 'shop:order': ORDER }, turns: [{ customer, expect: expected }] });

    expect(failure, text).toBeNull();
  });

  it('rule 14: names the model of vectors, which it does not ask', async () => {
    const { agent_config: config, ...manifest } = SHOP['manifest.yaml'];
    const search = { hostname: 'localhost', port: 1, password: '$'.concat('{A}'), collection: 'docs', embedding_model: 'a/vectors', embedding_dimensions: 2 };
    const files = {
      ...SHOP,
      'manifest.yaml': { ...manifest, agent_config: { ...config, search } },
      'scenarios/one.json': { title: 'One', turns: [{ customer }] },
    };
    const folder = join(await folderWith(files), 'scenarios');

    expect((await test(folder)).lines.at(-2)).toBe('a/vectors was not asked: shared words decide what is alike.');
    expect(JSON.parse((await test(folder, { json: true })).text)).toMatchObject({ not_asked: 'a/vectors' });
    expect(JSON.parse((await testShop({ turns: [{ customer }] }, { json: true })).text)).toMatchObject({ not_asked: null });
  });

  it('says nothing of searches that the manifest does not have', async () => {
    const { failure } = await testShop({ search: [{ documents: [] }], turns: [{ customer }] });

    expect(failure?.message).toContain('search: the manifest has no search');
  });

  it('asks the customer for what a tool lacks, and fails where another question is expected', async () => {
    const turns = [{ customer: 'Where is the order?', expect: { tools: { called: [], not_called: ['shop:order'] }, questions: ['number'] } }];
    const { lines, failure } = await testShop({ tools: { 'shop:order': ORDER }, turns });

    expect(lines).toEqual(expect.arrayContaining(['      - the customer is asked for number', '      + the customer is asked for id']));
    expect(failure).toMatchObject({ code: 'scenario.failed', message: '1 scenario has failed' });
  });

  it('gives answers by the arguments, and fails where it has none', async () => {
    const answers = [{ arguments: { id: 1 }, result: 'one' }];
    const { text } = await testShop({ tools: { 'shop:order': { ...ORDER, answers } }, turns: [{ customer }] });

    expect(text).toContain('+ it has none for shop:order {"id":4711}');
  });

  it('uses each answer once, and the last one again; one may be an error', async () => {
    const answers = [{ result: 'packed' }, { error: 'the warehouse is closed' }];
    const turns = [
      { customer, expect: { tools: { called: ['shop:order'] } } },
      { customer: 'Where is the order 4712?', expect: { tools: { called: ['shop:order'] } } },
      { customer: 'Where is the order 4713?', expect: { tools: { called: ['shop:order'] } } },
    ];
    const { text, failure } = await testShop({ tools: { 'shop:order': { ...ORDER, answers } }, turns }, { json: true });

    expect(failure, text).toBeNull();
    const { scenarios } = JSON.parse(text) as { scenarios: { turns: { decisions: { tools: object[] } }[] }[] };
    const called = scenarios[0]?.turns.flatMap(({ decisions }) => decisions.tools);
    expect(called).toEqual([4711, 4712, 4713].map((id) => ({ tool_id: 'shop:order', arguments: { id }, failed: id !== 4711 })));
  });

  it('names what differs in each of its turns', async () => {
    const turns = [
      {
        customer: 'Hello',
        expect: { policies: { apply: ['complaints'] }, outcome: 'failed', reply: { contains: ['no such words'], does_not_contain: ['script'] } },
      },
      { customer: 'I complain about rudeness', expect: { policies: { do_not_apply: ['complaints'] } } },
    ];
    const { lines } = await testShop({ turns });

    expect(lines[0]).toBe('FAILED  one.json: One');
    expect(lines[1]).toBe('    turn 1, "Hello": - expected, + actual');
    expect(lines).toEqual(
      expect.arrayContaining([
        '      - the turn ends as failed',
        '      + the turn ends as replied',
        '      + the policy complaints does not apply',
        '      - the reply contains "no such words"',
        '      - the reply does not contain "script"',
        '    turn 2, "I complain about rudeness": - expected, + actual',
      ]),
    );
  });

  it('has the time that it states', async () => {
    const files = { ...SHOP, 'documents/prompts/shop.json': { id: 'shop', version: 1, text: 'You help. The time of the shop is {{now}}.' } };
    const turns = [{ customer: 'What is the time of the shop?', expect: { reply: { contains: ['2026-05-04'] } } }];
    const folder = await folderWith({ ...files, 'scenarios/one.json': { title: 'One', now: '2026-05-04T10:00:00Z', turns } });
    const { text, failure } = await test(join(folder, 'scenarios'));

    expect(failure, text).toBeNull();
  });

  it('begins a turn with its last event where the customer says nothing', async () => {
    const events = [{ human_agent: 'I take over.' }, { tool_result: { tool: 'crm:tier', result: 'gold' } }];
    const { text, failure } = await testShop({ turns: [{ events }] });

    expect(failure, text).toBeNull();
  });
});

describe('a folder of scenarios', () => {
  const problemsOf = async (scenario: object) => String((await testShop(scenario)).failure);

  it('is refused with every error, by file and field', async () => {
    const expected = {
      policies: { apply: ['refund'] },
      steps: { 'return-an-order': 'ask' },
      tools: { called: ['shop:order'] },
      reply: { contain: ['x'] },
    };
    const text = await problemsOf({ turns: [{ customer: 'x', expect: expected }] });
    expect(text).toMatch(/one\.json: turns\[0\]\.expect\.reply\.contain: is not a known field/);

    const { reply: _, ...known } = expected;
    const names = await problemsOf({
      customer: { variables: { tier: 1 } },
      tools: { 'crm:tier': { answers: [{ result: 1 }] } },
      turns: [{ customer: 'x', expect: known }],
    });
    expect(names).toContain('one.json: turns[0].expect.policies.apply[0]: the manifest has no enabled policy "refund"');
    expect(names).toContain('one.json: turns[0].expect.steps.return-an-order: the manifest has no enabled conversational routine of this name');
    expect(names).toContain('one.json: turns[0].expect.tools.called[0]: the scenario has no tool "shop:order"');
    expect(names).toContain('one.json: customer.variables.tier: no variable set of the manifest declares it');
    expect(names).toContain('one.json: tools.crm:tier: no policy and no step of the manifest names a tool of this server');
  });

  it.each([
    ['neither customer nor events', { turns: [{}] }, 'turns[0]: must have either customer or events'],
    ['no turn', { turns: [] }, 'turns: must'],
    ['an event of two kinds', { turns: [{ events: [{ customer: 'a', system: 'b' }] }] }, 'turns[0].events[0]: must have exactly one of'],
    ['a time of no format', { now: 'tomorrow', turns: [{ customer: 'a' }] }, 'now: must be a time like'],
    ['an answer without a result', { tools: { 'shop:order': { answers: [{}] } }, turns: [{ customer: 'a' }] }, 'answers[0]: must have either result or error'],
    [
      'a schema that is none',
      { tools: { 'shop:order': { input_schema: { type: 'word' }, answers: [{ result: 1 }] } }, turns: [{ customer: 'a' }] },
      'input_schema: is no JSON Schema',
    ],
  ])('is refused with %s', async (_, scenario, problem) => {
    expect(await problemsOf(scenario)).toContain(problem);
  });

  it('is refused where a file is no YAML', async () => {
    const folder = await folderWith({ ...SHOP, 'scenarios/a.yaml': 'title: "open' });

    expect(String((await test(join(folder, 'scenarios'))).failure)).toMatch(/a\.yaml: line 1, column \d+: /);
  });

  it('is refused where it is empty, or does not exist', async () => {
    const folder = await folderWith(SHOP);
    await mkdir(join(folder, 'scenarios'));

    expect(String((await test(join(folder, 'scenarios'))).failure)).toContain('there is no scenario');
    expect(String((await test(join(folder, 'elsewhere'))).failure)).toContain("the folder can't be read");
  });

  it('is refused with the errors of its agent', async () => {
    const folder = await folderWith({ ...SHOP, 'documents/policies/complaints.json': '{}', 'scenarios/a.json': { title: 'A', turns: [{ customer: 'a' }] } });

    expect((await test(join(folder, 'scenarios'))).failure).toMatchObject({ code: 'config.invalid' });
  });
});
