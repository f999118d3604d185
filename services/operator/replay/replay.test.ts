import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { documentKeys, setOf } from '#actors/engine/evaluation/evaluation-set.ts';
import { textBatches } from '#actors/engine/likeness/compared-texts.ts';
import { EvaluationsReader } from '#actors/inputs/evaluations-reader.ts';
import { systemClock } from '#shared/clock.ts';
import { evaluationStore } from '#shared/config/evaluation-store.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import type { MessageCheck } from '../conversation/conversation.ts';
import { loadAgent } from '../load-agent.ts';
import { replayCommand } from '../replay-command.ts';
import { folderWith, SHOP } from '../test-support/agent-folder.ts';
import { recordSession } from '../test-support/record-session.ts';

const TEXTS = ['Hello', 'Where is the order 4711?', 'I complain about rudeness', 'Thanks'];
const ACME = fileURLToPath(new URL('../../../examples/acme-support/manifest.yaml', import.meta.url));
const UNCHECKED = 'moderation_unavailable: a message could not be checked by moderation';
const tables = ['sessions', 'events', 'turn_steps', 'agent_states', 'effects', 'outbox', 'bundles'];

let database: Database;
let number = 0;
let sessionId: string;

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());
beforeEach(() => {
  number += 1;
  sessionId = `ses_${number}`;
});

/** @param files in place of those of the shop's agent @param metadata of the tool's results */
async function record(
  texts: readonly string[] = TEXTS,
  files: Record<string, unknown> = {},
  metadata: Record<string, unknown> = {},
  checkOf?: (text: string) => MessageCheck | undefined,
): Promise<void> {
  const manifest = join(await folderWith({ ...SHOP, ...files }), 'manifest.yaml');
  await recordSession(database, sessionId, { bundle: (await loadAgent({ manifest, documents: null }, {})).bundle, texts, metadata, checkOf });
}

interface Ended {
  outcome: string;
  error: string | null;
}

interface Report {
  differing: number;
  recorded_answers: { model_calls: number; tool_calls: number };
  asked: { model_calls: number; answered_by: string | null };
  not_asked: string | null;
  suppressed_tool_calls: string[];
  servers_without_tools: string[];
  turns: { recorded: Ended; replayed: Ended; offset: number; about: string; differences: { recorded: string | null; replayed: string | null }[] }[];
}

/** @param files in place of the recorded agent's */
async function replay(files: Record<string, unknown> = {}, { fromOffset = 0, id = sessionId, json = true, manifest: given = '' } = {}) {
  const manifest = given || join(await folderWith({ ...SHOP, ...files }), 'manifest.yaml');
  const lines: string[] = [];
  const deps = { openDatabase: async () => database, environment: {}, print: (line: string) => lines.push(line), clock: systemClock, log: silentLog };
  await replayCommand({ sessionId: id, manifest, documents: null, fromOffset, json }, deps);
  const text = lines.join('\n');
  return { text, report: (json ? JSON.parse(text) : null) as Report };
}

async function counts(): Promise<number[]> {
  const found: number[] = [];
  for (const table of tables) found.push((await database.query<{ count: number }>(`select count(*)::int as count from ${table}`)).rows[0]?.count ?? -1);
  return found;
}

describe('the replay of a session', () => {
  it('DESIGN 5: a replay with the same documents decides alike, asks no model and writes nothing', async () => {
    await record();
    const before = await counts();
    const { report } = await replay();

    expect(report.turns.map(({ about }) => about)).toEqual(TEXTS);
    expect(report.turns.flatMap(({ differences }) => differences)).toEqual([]);
    expect(report.asked).toEqual({ model_calls: 0, answered_by: null });
    expect(report.recorded_answers.tool_calls).toBe(1);
    expect(report.recorded_answers.model_calls).toBeGreaterThan(TEXTS.length);
    expect(report.suppressed_tool_calls).toEqual([]);
    expect(await counts()).toEqual(before);
  });

  it('rules 120 to 123: has what moderation found in each message, and ends the turn again that it ended', async () => {
    const texts = ['Hello', 'Where is the order 4711?', 'You idiots', 'Thanks'];
    const verdicts: Record<string, MessageCheck['verdict']> = {
      Hello: { type: 'passed' },
      'Where is the order 4711?': { type: 'unavailable' },
      'You idiots': { type: 'flagged', tags: ['harassment'] },
    };
    await record(texts, {}, {}, (text) => (verdicts[text] === undefined ? undefined : { mode: 'auto', verdict: verdicts[text] }));
    const { report } = await replay();

    expect(report.turns.map(({ recorded }) => [recorded.outcome, recorded.error])).toEqual([
      ['replied', null],
      ['failed', UNCHECKED],
      ['replied', null],
      ['replied', null],
    ]);
    expect(report.turns.flatMap(({ differences }) => differences)).toEqual([]);
    expect(report.asked).toEqual({ model_calls: 0, answered_by: null });
    const { report: changed } = await replay({
      'documents/policies/complaints.json': { id: 'complaints', version: 1, condition: 'The customer complains about another thing', action: 'Apologise.' },
    });
    // Only the documents have changed, not what moderation has found.
    expect(changed.turns.map(({ replayed }) => replayed.error)).toEqual([null, UNCHECKED, null, null]);
  });

  it('with another condition asks the model about it alone, and says what is decided otherwise', async () => {
    await record();
    const { report, text } = await replay({
      'documents/policies/complaints.json': { id: 'complaints', version: 1, condition: 'The customer asks for a manager', action: 'Apologise.' },
    });

    expect(
      report.turns.map(({ differences }) => differences.length),
      text,
    ).toEqual([0, 0, 1, 0]);
    expect(report.turns[2]?.differences).toEqual([{ recorded: expect.stringContaining('the policy complaints applies'), replayed: null }]);
    expect(report.asked.model_calls).toBeGreaterThan(0);
    expect(report.recorded_answers.tool_calls).toBe(1);
  });

  it('from an offset on begins with the first turn there, after the recorded conversation', async () => {
    await record();
    const { report: whole } = await replay();
    const [, second, third] = whole.turns.map(({ offset }) => offset);
    const { report } = await replay({}, { fromOffset: (second ?? 0) + 1 });

    expect(report.turns.map(({ offset }) => offset)).toEqual([third, whole.turns[3]?.offset]);
    expect(report.turns.flatMap(({ differences }) => differences)).toEqual([]);
    expect(report.asked.model_calls).toBe(0);
  });

  it('DESIGN 5: a replay makes no call of a tool: one without a recorded result has failed, and is named', async () => {
    await record();
    const other = { ...SHOP['documents/policies/order-status.json'], condition: 'The customer complains, or asks where the order is' };
    await database.query(
      `update turn_steps set body = jsonb_set(body::jsonb, '{call,arguments}', '{"id": 1}')::json where session_id = $1 and body->>'kind' = 'tool'`,
      [sessionId],
    );
    const { report } = await replay({ 'documents/policies/order-status.json': other });

    expect(report.suppressed_tool_calls).toEqual(['shop:order {"id":4711}']);
    expect(report.turns[1]?.differences).toEqual([
      { recorded: 'shop:order {"id":1} is called', replayed: null },
      { recorded: null, replayed: 'shop:order {"id":4711} is called, and fails' },
    ]);
  });

  it('with the same documents repeats the checks of replies for policies of high criticality', async () => {
    const files = { 'documents/policies/complaints.json': { ...SHOP['documents/policies/complaints.json'], criticality: 'high' } };
    await record(['I complain about rudeness', 'Thanks'], files);
    const { rows } = await database.query(`select body from turn_steps where session_id = $1 and body->>'kind' = 'check-reply'`, [sessionId]);
    expect(rows).toHaveLength(1);

    const { report } = await replay(files);
    expect(report).toMatchObject({ differing: 0, asked: { model_calls: 0 } });
  });

  const manifestWith = (search: object) => ({ ...SHOP['manifest.yaml'], agent_config: { ...SHOP['manifest.yaml'].agent_config, search } });
  it.each([
    ['at a service', null, { type: 'external', hostname: '127.0.0.1', port: 1, path: '/find' }],
    [
      'in a table of vectors',
      'openai/small',
      { hostname: '127.0.0.1', port: 1, password: '${P}', collection: 'docs', embedding_model: 'openai/small', embedding_dimensions: 256 },
    ],
  ])('with the same documents has what was found for each reply, in place of another search %s', async (_, unasked, search) => {
    const files = { 'manifest.yaml': manifestWith(search) };
    const manifest = join(await folderWith({ ...SHOP, ...files }), 'manifest.yaml');
    const found = [{ content: 'Open on weekdays', title: null, url: null }];
    const { bundle } = await loadAgent({ manifest, documents: null }, {});
    await recordSession(database, sessionId, { bundle, texts: ['Where is the order 4711?', 'Thanks'], metadata: {}, found });
    const { report } = await replay(files);

    expect(report).toMatchObject({ differing: 0, asked: { model_calls: 0 }, not_asked: unasked });
    const named = (await replay(files, { json: false })).text.includes('openai/small was not asked: where no vector is recorded, shared words decide');
    expect(named).toBe(unasked !== null);
    const changed = await replay({ ...files, 'documents/prompts/shop.json': { id: 'shop', version: 1, text: 'You help.' } });
    expect(changed.report.asked.model_calls).toBeGreaterThan(0);
  });

  it('with the same documents follows policies, relationships and steps of the sample agent alike', async () => {
    const { bundle } = await loadAgent({ manifest: ACME, documents: null }, {});
    const texts = [
      ...['How can I return my order?', 'It is AC12345678', 'It was delivered 10 days ago', 'My machine leaks and I want my money back', 'It was too loud'],
      ...['The machine still leaks', 'Can I get my money back?', 'How often should I descale?', 'I want to send something back', 'Thanks, goodbye'],
    ];
    await recordSession(database, sessionId, { bundle, texts, metadata: {} });
    const { report, text } = await replay({}, { manifest: ACME });

    expect(report.turns.map(({ about }) => about)).toEqual(texts);
    expect(report, text).toMatchObject({ differing: 0, asked: { model_calls: 0 } });
    const { rows } = await database.query<{ count: number }>(`select count(*)::int as count from turn_steps where session_id = $1`, [sessionId]);
    expect(rows[0]?.count).toBeGreaterThan(40);
  });

  it('with the same documents goes on after a handover to a person', async () => {
    await record(TEXTS, {}, { 'switchyard/control': { mode: 'manual' } });
    const { report } = await replay();

    expect(report.turns).toHaveLength(TEXTS.length);
    expect(report).toMatchObject({ differing: 0, asked: { model_calls: 0 } });
  });

  it('with the same documents knows the tools that its turns knew, and no list that came later', async () => {
    await record(['Where is the order 4711?']);
    // As if the server had not been listed yet: nothing was inferred, and no tool was called.
    await database.query(`update turn_steps set body = jsonb_set(body::jsonb, '{lists}', '{}')::json where session_id = $1 and body->>'kind' = 'began'`, [
      sessionId,
    ]);
    await database.query(
      `insert into tool_servers (bundle_hash, server_id, list_hash, state, checked_at) values ('other', 'shop', 'list-of-the-shop', 'ready', now())`,
    );
    const { report } = await replay();

    expect(report.turns[0]?.differences).toEqual([{ recorded: 'shop:order {"id":4711} is called', replayed: null }]);
  });

  it('knows the tools of a server that only the other documents name by its newest list', async () => {
    await record(['I complain about rudeness']);
    const complaints = { id: 'complaints', version: 1, condition: 'The customer complains about rudeness', action: 'Apologise.', tools: ['crm:note'] };
    const { agent_config: config, ...manifest } = SHOP['manifest.yaml'];
    const mcps = [...config.mcps, { id: 'crm', hostname: 'http://localhost', port: 2 }];
    const files = { 'documents/policies/complaints.json': complaints, 'manifest.yaml': { ...manifest, agent_config: { ...config, mcps } } };
    expect((await replay(files)).report).toMatchObject({ suppressed_tool_calls: [], servers_without_tools: ['crm'] });

    const note = { name: 'note', title: null, description: 'Takes a note', inputSchema: { type: 'object' }, repeatable: false };
    await database.query(`insert into tool_lists (hash, tools) values ('crm-list', $1) on conflict do nothing`, [JSON.stringify([note])]);
    await database.query(`insert into tool_servers (bundle_hash, server_id, list_hash, state, checked_at) values ('other', 'crm', 'crm-list', 'ready', now())`);
    expect((await replay(files)).report).toMatchObject({ suppressed_tool_calls: ['crm:note {}'], servers_without_tools: [] });
  });

  it('rule 14: has what recorded vectors have shown, and with other documents shared words', async () => {
    const files = comparedFiles();
    const { bundle } = await loadAgent({ manifest: join(await folderWith({ ...SHOP, ...files }), 'manifest.yaml'), documents: null }, {});
    const store = evaluationStore(database);
    for (const { key: hash, texts } of textBatches(bundle.body)) {
      const vectors = Buffer.from(new Float32Array(texts.flatMap(() => [1, 0])).buffer).toString('base64');
      await store.store({ hash, kind: 'vectors', result: { vectors } });
    }
    const keys = documentKeys(bundle.body);
    const { hash, set } = setOf(keys, keys);
    await store.store({ hash, kind: 'set', result: set });
    const evaluations = await new EvaluationsReader({ store, clock: systemClock }).read(bundle, hash);
    const row = { kind: 'likeness' as const, key: 'likeness', model: 'a/vectors', ms: 1, tokens: 1, failure: null, terms: [3, 5] };
    await recordSession(database, sessionId, { bundle, texts: ['Hello'], metadata: {}, likeness: { evaluations, row } });

    const { report } = await replay(files);
    expect(report).toMatchObject({ differing: 0, asked: { model_calls: 0 } });
    const other = comparedFiles('with other words');
    const { report: changed } = await replay(other);
    // The glossary of its prompts is another, so the model is asked anew.
    expect(changed.asked.model_calls).toBeGreaterThan(0);
  });

  it('uses no recorded answer for another model, whose prompts are the same', async () => {
    await record(['Where is the order 4711?']);
    const { agent_config: config, ...manifest } = SHOP['manifest.yaml'];
    const { report } = await replay({ 'manifest.yaml': { ...manifest, agent_config: { ...config, llms: { ...config.llms, default: 'openai/gpt-6' } } } });

    expect(report.recorded_answers).toEqual({ model_calls: 0, tool_calls: 1 });
    expect(report.asked).toEqual({ model_calls: expect.any(Number), answered_by: expect.stringContaining('scripted') });
    expect(report.differing).toBe(0);
  });

  it('asks anew where the calls of a turn are no longer stored', async () => {
    await record(['Where is the order 4711?']);
    await database.query('delete from effects where session_id = $1', [sessionId]);
    const { report } = await replay();

    expect(report.recorded_answers).toEqual({ model_calls: 0, tool_calls: 1 });
    expect(report.differing).toBe(0);
  });

  it('names differences for people', async () => {
    await record();
    const { text } = await replay({ 'manifest.yaml': withoutComplaints() }, { json: false });

    expect(text).toContain('alike      offset 0, "Hello"');
    expect(text).toMatch(/OTHERWISE {2}offset \d+, "I complain about rudeness": - recorded, \+ replayed\n {4}- the policy complaints applies/);
    expect(text).toContain('4 turns: 3 decided alike, 1 otherwise.');
  });

  it('is refused for an unknown session, a deleted one, and an offset behind the last turn', async () => {
    await expect(replay({}, { id: 'ses_none' })).rejects.toMatchObject({ code: 'session.not_found', message: expect.stringContaining('ses_none') });

    await record(['Hello']);
    await expect(replay({}, { fromOffset: 1_000 })).rejects.toMatchObject({
      code: 'request.invalid',
      message: expect.stringMatching(/no turn begins at offset 1000 or later: the last event has \d+/),
    });
    await database.query('update sessions set deleted_at = now() where id = $1', [sessionId]);
    await expect(replay()).rejects.toMatchObject({ code: 'session.not_found' });
  });

  it('is refused for a session without a turn', async () => {
    await record(['Hello']);
    await database.query(`delete from events where session_id = $1 and kind <> 'user_message'`, [sessionId]);

    await expect(replay()).rejects.toMatchObject({ message: expect.stringContaining('the session has no turn that has ended') });
  });
});

/** With more terms than prompts have, and vectors to choose them by. */
function comparedFiles(description = 'a word'): Record<string, object> {
  const { agent_config: config, ...manifest } = SHOP['manifest.yaml'];
  const search = { hostname: 'localhost', port: 1, password: '$'.concat('{A}'), collection: 'docs', embedding_model: 'a/vectors', embedding_dimensions: 2 };
  const context = { ...config.context, glossaries: [{ id: 'words', version: 1 }] };
  const terms = Array.from({ length: 60 }, (_, index) => ({ name: `name${index}`, description }));
  return {
    'manifest.yaml': { ...manifest, agent_config: { ...config, search, context } },
    'documents/glossaries/words.json': { id: 'words', version: 1, terms },
  };
}

function withoutComplaints(): object {
  const { agent_config: config, ...manifest } = SHOP['manifest.yaml'];
  const policies = config.context.policies.filter(({ id }) => id !== 'complaints');
  return { ...manifest, agent_config: { ...config, context: { ...config.context, policies } } };
}
