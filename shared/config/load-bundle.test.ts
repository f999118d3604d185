import { writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { folderSource } from './folder-source.ts';
import { agentApiKey, type LoadedBundle, loadBundle } from './load-bundle.ts';

const environment = {
  AGENT_API_KEY: 'secret-agent',
  ROUTER_API_KEY: 'secret-router',
  PLATFORM_PUBLIC_KEY: 'secret-public',
  PLATFORM_SECRET_KEY: 'secret-secret',
};

type Files = Record<string, unknown>;

const manifest = {
  id: 'acme',
  name: 'Acme',
  version: '1',
  agent_config: {
    runtime: { api_key: '${AGENT_API_KEY}' },
    platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
    llms: { default: 'openai/gpt-5', api_key: '${ROUTER_API_KEY}' },
    context: { system_prompt: { id: 'acme', version: 1 }, language: 'match_user' },
  },
};

const prompt = { id: 'acme', version: 1, text: 'You help.' };

function manifestWith(context: object, agentConfig: object = {}) {
  const config = manifest.agent_config;
  return { ...manifest, agent_config: { ...config, ...agentConfig, context: { ...config.context, ...context } } };
}

const policy = (id: string, rest: object = {}) => ({ id, version: 1, condition: 'always', ...rest });
const autonomous = (id: string, rest: object = {}) => ({
  id,
  version: 1,
  kind: 'autonomous',
  instructions: 'Do it',
  callback_url_allowlist: ['acme.example'],
  ...rest,
});
const conversational = (id: string, rest: object = {}) => ({
  id,
  version: 1,
  conditions: ['always'],
  steps: [{ id: 'talk', kind: 'chat', chat_state: 'Hello' }],
  ...rest,
});
const v1 = (...ids: string[]) => ids.map((id) => ({ id, version: 1 }));

describe('loadBundle', () => {
  let root: string;

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'switchyard-bundle-'));
  });

  afterAll(async () => {
    await rm(root, { recursive: true, force: true });
  });

  /** Writes the files into a new folder: values as JSON, strings verbatim. */
  async function lay(files: Files): Promise<string> {
    const folder = await mkdtemp(join(root, 'agent-'));
    for (const [name, content] of Object.entries(files)) {
      const path = join(folder, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
    }
    return folder;
  }

  async function loadFrom(folder: string, given: Record<string, string> = environment): Promise<LoadedBundle> {
    return loadBundle({ manifestPath: join(folder, 'manifest.yaml'), documents: folderSource(join(folder, 'documents')), environment: given });
  }

  async function load(files: Files, given: Record<string, string> = environment): Promise<LoadedBundle> {
    return loadFrom(await lay({ 'documents/prompts/acme.yaml': prompt, ...files }), given);
  }

  /** Lines of the error, relative to the folder; empty without an error. */
  async function problemsOf(files: Files, given: Record<string, string> = environment): Promise<string[]> {
    const folder = await lay({ 'documents/prompts/acme.yaml': prompt, ...files });
    try {
      await loadFrom(folder, given);
      return [];
    } catch (error) {
      if (!(error instanceof SwitchyardError) || error.code !== 'config.invalid') throw error;
      const lines = error.message.replaceAll(`${folder}/`, '').split('\n');
      return lines.slice(1).map((line) => line.trim());
    }
  }

  describe('refuses', () => {
    it('everything that is wrong, together', async () => {
      const broken = manifestWith(
        {
          system_prompt: { id: 'missing', version: 1 },
          greeting: 'Hello from ${shop}',
          policies: [...v1('refunds', 'nowhere'), { id: 'safety', version: 2 }],
          routines: v1('return', 'triage'),
          reevaluation_tools: [{ id: 'orders:find' }],
          relationships: { priorities: [{ higher: 'policy:refunds', over: 'policy:unknown' }] },
        },
        {
          runtime: { api_key: 'secret-typed-in', log_level: 'loud' },
          llms: { default: 'gpt-5', api_key: '${NOT_SET}' },
          webhooks: [{ name: 'triage', secret_env: '${HOOK}', header: 'X-Signature', routines: ['return', 'ghost'] }],
        },
      );
      const lines = await problemsOf({
        'manifest.yaml': broken,
        'documents/policies/refunds.json': policy('refunds', { tools: ['orders:find'], owner: 'me' }),
        'documents/policies/safety.yaml': policy('safety', { version: 1 }),
        'documents/policies/twice.yml': policy('safety', { version: 1 }),
        'documents/routines/return.yaml': conversational('return', { policies: ['ghost'], steps: [{ id: 'a', kind: 'chat', chat_state: '${name}' }] }),
        'documents/routines/triage.yaml': autonomous('triage', { instructions: { id: 'goal', version: 3 } }),
        'documents/glossaries/words.yaml': 'id: words\nterms: [',
      });

      expect(lines).toEqual([
        'manifest.yaml: agent_config.runtime.api_key: must be a reference like ${VAR_NAME}; literal credentials are not accepted',
        'manifest.yaml: agent_config.runtime.log_level: must be one of "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"',
        'manifest.yaml: agent_config.llms.default: must be a model id like provider/model',
        'manifest.yaml: agent_config.llms.api_key: the environment variable NOT_SET is not set',
        'documents/policies/refunds.json: owner: is not a known field',
        'documents/policies/twice.yml: has the same id and version as documents/policies/safety.yaml: "safety", version 1',
        expect.stringMatching(/^documents\/glossaries\/words\.yaml: line 2, column \d+: /),
        'manifest.yaml: agent_config.context.system_prompt: there is no "missing" version 1 among the documents in prompts',
        'documents/routines/triage.yaml: instructions: there is no "goal" version 3 among the documents in prompts',
        'manifest.yaml: agent_config.context.policies[1]: there is no "nowhere" version 1 among the documents in policies',
        'manifest.yaml: agent_config.context.policies[2]: there is no "safety" version 2 among the documents in policies; there is version 1',
        'manifest.yaml: agent_config.context.greeting: the manifest names no macro "shop"',
        'manifest.yaml: agent_config.context.reevaluation_tools[0].id: the manifest\'s mcps name no tool server "orders"',
        'manifest.yaml: agent_config.webhooks[0].name: must differ from the routine "triage", because both are addressed under /webhooks',
        'manifest.yaml: agent_config.webhooks[0].routines[0]: must be an autonomous routine; "return" is conversational',
        'manifest.yaml: agent_config.webhooks[0].routines[1]: the manifest names no routine "ghost"',
        'documents/routines/return.yaml: policies[0]: the manifest names no policy "ghost"',
        'documents/routines/return.yaml: steps[0].chat_state: the manifest names no macro "name"',
        'manifest.yaml: agent_config.context.relationships.priorities[0].over: the manifest names no "policy:unknown"',
      ]);
      expect(lines.join()).not.toContain('secret-');
    });

    it('a missing manifest, and still checks the documents', async () => {
      expect(await problemsOf({ 'documents/macros/m.yaml': { id: 'm', version: 1 } })).toEqual([
        'manifest.yaml: the file does not exist',
        'documents/macros/m.yaml: value: must be given, or else variable: exactly one of the two',
      ]);
    });

    it('a missing documents folder', async () => {
      const folder = await lay({ 'manifest.yaml': manifest });

      await expect(loadFrom(folder)).rejects.toThrow(`${folder}/documents: the folder does not exist`);
    });

    it('credentials whose variables are not set, the optional ones too, each by its name and place', async () => {
      const config = {
        database: { hostname: 'db', password: '${DB_PASSWORD}' },
        search: pgvector('${KB_PASSWORD}'),
        mcps: [{ id: 'orders', hostname: 'https://orders.example', port: 443, api_key: '${ORDERS_KEY}' }],
        traces: { backend: { url: 'https://traces.example', api_key: '${TRACES_KEY}' } },
      };

      expect(await problemsOf({ 'manifest.yaml': manifestWith({}, config) }, { AGENT_API_KEY: '' })).toEqual([
        'manifest.yaml: agent_config.runtime.api_key: the environment variable AGENT_API_KEY is not set',
        'manifest.yaml: agent_config.platform.public_key: the environment variable PLATFORM_PUBLIC_KEY is not set',
        'manifest.yaml: agent_config.platform.secret_key: the environment variable PLATFORM_SECRET_KEY is not set',
        'manifest.yaml: agent_config.llms.api_key: the environment variable ROUTER_API_KEY is not set',
        'manifest.yaml: agent_config.search.password: the environment variable KB_PASSWORD is not set',
        'manifest.yaml: agent_config.database.password: the environment variable DB_PASSWORD is not set',
        'manifest.yaml: agent_config.mcps[0].api_key: the environment variable ORDERS_KEY is not set',
        'manifest.yaml: agent_config.traces.backend.api_key: the environment variable TRACES_KEY is not set',
      ]);
      const external = { type: 'external', hostname: 'kb.example', port: 443, path: '/search', api_key: '${KB_KEY}' };
      expect(await problemsOf({ 'manifest.yaml': manifestWith({}, { search: external }) })).toEqual([
        'manifest.yaml: agent_config.search.api_key: the environment variable KB_KEY is not set',
      ]);
    });

    it('references to undefined names', async () => {
      const lines = await problemsOf({
        'manifest.yaml': manifestWith(
          { policies: v1('p'), macros: v1('first-name', 'city', 'plain'), variables: v1('customer'), routines: v1('r') },
          {
            mcps: [{ id: 'orders', hostname: 'https://orders.example', port: 443 }],
            search: { ...pgvector('${AGENT_API_KEY}'), prompt: { id: 'rewrite', version: 1 } },
          },
        ),
        'documents/policies/p.yaml': policy('p', {
          routines: ['ghost'],
          tools: ['stock:count', 'orders:find'],
          depends_on: ['policy:q'],
          disambiguates: ['tag:x', 'routine:r'],
        }),
        'documents/macros/first-name.yaml': { id: 'first-name', version: 1, variable: { set: 'customer', name: 'first' } },
        'documents/macros/city.yaml': { id: 'city', version: 1, variable: { set: 'places', name: 'city' } },
        'documents/macros/plain.yaml': { id: 'plain', version: 1, value: 'x' },
        'documents/variable-sets/customer.yaml': { id: 'customer', version: 1, variables: [{ name: 'name', tool_id: 'crm:name', freshness: '0 25 * * *' }] },
        'documents/routines/r.yaml': conversational('r', {
          tools: ['stock:*', 'orders:*'],
          steps: [{ id: 'a', kind: 'tool', tool_state: ['orders:x', 'stock:x'] }],
        }),
      });

      expect(lines).toEqual([
        'manifest.yaml: agent_config.search.prompt: there is no "rewrite" version 1 among the documents in prompts',
        'documents/routines/r.yaml: tools[0]: the manifest\'s mcps name no tool server "stock"',
        'documents/routines/r.yaml: steps[0].tool_state[1]: the manifest\'s mcps name no tool server "stock"',
        'documents/policies/p.yaml: routines[0]: the manifest names no routine "ghost"',
        'documents/policies/p.yaml: tools[0]: the manifest\'s mcps name no tool server "stock"',
        expect.stringMatching(/^documents\/variable-sets\/customer\.yaml: variables\[0\]\.freshness: must be a cron rule: .*hour/),
        'documents/variable-sets/customer.yaml: variables[0].tool_id: the manifest\'s mcps name no tool server "crm"',
        'documents/macros/first-name.yaml: variable.name: the variable set "customer" has no variable "first"',
        'documents/macros/city.yaml: variable.set: the manifest names no variable set "places"',
        'documents/policies/p.yaml: disambiguates[0]: no policy or routine of the manifest has the label of "tag:x"',
        'documents/policies/p.yaml: depends_on[0]: the manifest names no "policy:q"',
      ]);
    });

    it('priorities that form a cycle, over however many steps and over labels', async () => {
      const lines = await relationships({
        priorities: [
          { higher: 'policy:a', over: 'policy:b' },
          { higher: 'policy:b', over: 'tag:third' },
          { higher: 'policy:c', over: 'policy:a' },
        ],
      });

      expect(lines).toEqual(['manifest.yaml: agent_config.context.relationships.priorities: form a cycle: policy:a over policy:b over policy:c over policy:a']);
    });

    it('something that displaces itself', async () => {
      expect(await relationships({ priorities: [{ higher: 'policy:a', over: 'policy:a' }] })).toEqual([
        'manifest.yaml: agent_config.context.relationships.priorities[0]: puts "policy:a" above itself',
      ]);
    });

    it('a routine over all routines under one that it displaces', async () => {
      const lines = await relationships({
        priorities: [
          { higher: 'routine:r', over_all_routines: true },
          { higher: 'routine:s', over: 'routine:r' },
        ],
      });

      expect(lines).toEqual(['manifest.yaml: agent_config.context.relationships.priorities: form a cycle: routine:r over routine:s over routine:r']);
    });

    it('something that brings along what it displaces', async () => {
      const lines = await relationships({
        priorities: [{ higher: 'policy:a', over: 'tag:third' }],
        entailments: [
          { when: 'policy:b', also_apply: ['policy:c'] },
          { when: 'policy:a', also_apply: ['policy:b', 'policy:c'] },
        ],
      });

      expect(lines).toEqual([
        'manifest.yaml: agent_config.context.relationships.entailments[1].also_apply[1]: contradicts priorities, where "policy:a" displaces "policy:c"',
      ]);
    });

    it('policies that depend on each other in a cycle', async () => {
      const lines = await problemsOf({
        'manifest.yaml': manifestWith({ policies: v1('a', 'b') }),
        'documents/policies/a.yaml': policy('a', { depends_on: ['policy:b', 'tag:self'], labels: ['self'] }),
        'documents/policies/b.yaml': policy('b', { depends_on: ['policy:a'] }),
      });

      // The policy has the label itself, so the label means the others.
      expect(lines).toEqual(['documents/policies/a.yaml: depends_on: forms a cycle: policy:a depends on policy:b depends on policy:a']);
    });

    it('more documents than may be read, without reading them', async () => {
      const folder = await lay({ 'manifest.yaml': manifest, 'documents/prompts/acme.yaml': prompt });
      for (let number = 0; number < 2_000; number += 1) writeFileSync(join(folder, 'documents', 'prompts', `p${number}.yaml`), 'id: [');

      await expect(loadFrom(folder)).rejects.toThrow(/contains more than 2000 documents$/);
    });

    it('more text than may be read, without reading it', async () => {
      const files: Files = { 'manifest.yaml': manifest };
      for (let number = 0; number < 5; number += 1) files[`documents/policies/p${number}.yaml`] = 'x'.repeat(1_000_000);

      await expect(load(files)).rejects.toThrow(/contains more than 4 MiB of documents$/);
    });

    it('a folder with more entries than may be listed', async () => {
      const folder = await lay({ 'manifest.yaml': manifest, 'documents/prompts/acme.yaml': prompt });
      for (let number = 0; number < 10_000; number += 1) writeFileSync(join(folder, 'documents', 'prompts', `${number}.txt`), '');

      await expect(loadFrom(folder)).rejects.toThrow(/has more than 10000 entries$/);
    });

    it('relationships that stand for too many pairs', async () => {
      const ids = Array.from({ length: 450 }, (_, number) => `p${number}`);
      const files: Files = {
        'manifest.yaml': manifestWith({ policies: v1(...ids), relationships: { priorities: [{ higher: 'tag:all', over: 'tag:all' }] } }),
      };
      for (const id of ids) files[`documents/policies/${id}.json`] = policy(id, { labels: ['all'] });

      expect(await problemsOf(files)).toEqual([
        'manifest.yaml: agent_config.context.relationships.priorities[0]: puts "tag:all" above itself',
        'manifest.yaml: agent_config.context.relationships.priorities: expand to more than 200000 pairs',
      ]);
    });
  });

  it('does not report consequences of an unreadable document', async () => {
    const lines = await problemsOf({
      'manifest.yaml': manifestWith(
        {
          routines: v1('triage'),
          macros: v1('city'),
          variables: v1('places'),
          relationships: { priorities: [{ higher: 'tag:urgent', over: 'routine:triage' }] },
        },
        { webhooks: [{ name: 'claims', secret_env: '${HOOK}', header: 'X-Signature', routines: ['triage'] }] },
      ),
      'documents/routines/triage.yaml': { id: 'triage', version: 1, kind: 'autonomus' },
      'documents/macros/city.yaml': { id: 'city', version: 1, variable: { set: 'places', name: 'city' } },
      'documents/variable-sets/places.yaml': { id: 'places', version: 1, variables: {} },
    });

    expect(lines).toEqual([
      'documents/routines/triage.yaml: kind: must be one of "conversational", "autonomous"',
      'documents/variable-sets/places.yaml: variables: must be a list',
    ]);
  });

  it('holds what the manifest refers to over however many steps, in a fixed order, and nothing else', async () => {
    const { body, warnings } = await load({
      'manifest.yaml': manifestWith({ routines: v1('triage', 'a-first'), policies: [{ id: 'p', version: 2 }] }),
      'documents/prompts/z.yaml': { id: 'goal', version: 2, text: 'Second' },
      'documents/prompts/a.yaml': { id: 'goal', version: 10, text: 'Tenth' },
      'documents/prompts/other.yaml': { id: 'other', version: 1, text: 'Not referred to' },
      'documents/routines/1.yaml': autonomous('triage', { instructions: { id: 'goal', version: 10 } }),
      'documents/routines/2.yaml': autonomous('a-first', { instructions: { id: 'goal', version: 2 } }),
      'documents/policies/1.yaml': policy('p'),
      'documents/policies/2.yaml': policy('p', { version: 2 }),
    });

    const { prompts, routines, policies } = body.documents;
    expect(prompts.map(({ id, version }) => `${id} ${version}`)).toEqual(['acme 1', 'goal 2', 'goal 10']);
    expect(routines.map(({ id }) => id)).toEqual(['a-first', 'triage']);
    expect(policies.map(({ version }) => version)).toEqual([2]);
    expect(warnings).toEqual([]);
  });

  it('reads escaped dollar signs and other texts in braces literally', async () => {
    const greeting = 'Pay ${amount} with $${voucher} or ${two words}';

    const { body } = await load({
      'manifest.yaml': manifestWith({ greeting, macros: v1('amount') }),
      'documents/macros/amount.yaml': { id: 'amount', version: 1, value: '5' },
    });

    expect(body.manifest.agent_config.context.greeting).toBe(greeting);
  });

  it('DESIGN 10: a bundle has the same hash whatever order keys and files come in, and another for another text', async () => {
    const files = {
      'manifest.yaml': manifestWith({ policies: v1('a', 'b') }),
      'documents/policies/1.yaml': policy('a'),
      'documents/policies/2.yaml': policy('b'),
    };
    const { agent_config: config, ...top } = files['manifest.yaml'];
    const turned = {
      'manifest.yaml': `# the same in YAML, and the other way round\n${JSON.stringify({ agent_config: Object.fromEntries(Object.entries(config).reverse()), ...top })}`,
      'documents/policies/2.yaml': { condition: 'always', version: 1, id: 'a' },
      'documents/policies/1.yaml': policy('b', { title: '', labels: [] }),
    };

    const [first, second, other] = [
      await load(files),
      await load(turned),
      await load({ ...files, 'documents/policies/1.yaml': policy('a', { condition: 'never' }) }),
    ];

    expect(first.hash).toMatch(/^[0-9a-f]{64}$/);
    expect(second.hash).toBe(first.hash);
    expect(other.hash).not.toBe(first.hash);
  });

  it('DESIGN 10: a bundle stores credentials as references, so that its body holds no secret', async () => {
    const { body } = await load({ 'manifest.yaml': manifest });

    expect(JSON.stringify(body)).not.toContain('secret-');
    expect(body.manifest.agent_config.runtime.api_key).toBe('${AGENT_API_KEY}');
  });

  it('warns of what works but is probably a mistake', async () => {
    const folder = await lay({
      'documents/prompts/acme.yaml': prompt,
      'manifest.yaml': manifestWith(
        { routines: v1('open', 'hooked') },
        {
          webhooks: [{ name: 'claims', secret_env: '${CLAIMS_SECRET}', header: 'X-Signature', routines: ['open'] }],
        },
      ),
      'documents/routines/open.yaml': autonomous('open', { callback_url_allowlist: [] }),
      'documents/routines/hooked.yaml': autonomous('hooked', { autonomous: { webhook: { secret_env: '${OWN_SECRET}', header: 'X-Signature' } } }),
      'documents/policys/lost.yaml': policy('lost'),
      'documents/prompts/notes.txt': 'not a document',
    });

    const { warnings } = await loadFrom(folder);

    expect(warnings.map((warning) => warning.replaceAll(`${folder}/`, ''))).toEqual([
      'manifest.yaml: agent_config.webhooks[0].secret_env: the environment variable CLAIMS_SECRET is not set; deliveries are refused until it is',
      'documents/policys is ignored: the folders of documents are prompts, routines, policies, glossaries, macros, variable-sets',
      'documents/routines/hooked.yaml: autonomous.webhook.secret_env: the environment variable OWN_SECRET is not set; deliveries are refused until it is',
      'documents/routines/open.yaml: callback_url_allowlist is not set: results of the routine "open", and the agent\'s key with them, may be sent to any host',
    ]);
  });

  it('DESIGN 10: a process requires only the credentials that it uses', async () => {
    const folder = await lay({ 'documents/prompts/acme.yaml': prompt, 'manifest.yaml': manifestWith({}) });
    const paths = { manifestPath: join(folder, 'manifest.yaml'), documents: folderSource(join(folder, 'documents')) };
    const whole = await loadFrom(folder);

    expect(await loadBundle({ ...paths, environment: {}, credentials: [] })).toEqual(whole);
    await expect(loadBundle({ ...paths, environment: {}, credentials: ['runtime.api_key'] })).rejects.toThrow(/1 error:\n.*AGENT_API_KEY is not set$/);
  });

  it('loads the sample agent', async () => {
    const folder = fileURLToPath(new URL('../../examples/acme-support/', import.meta.url));

    const bundle = await loadFrom(folder);

    const { manifest: read, documents } = bundle.body;
    expect(read.agent_config.llms.default).toBe('switchyard/assistant');
    expect(read.agent_config.context.greeting).toBeNull();
    expect(documents.prompts[0]?.text).toContain('within 30 days');
    expect(documents.policies.map(({ id }) => id)).toEqual(['leaking-machine', 'refunds']);
    expect(documents.routines.map(({ id, kind }) => `${id} ${kind}`)).toEqual(['return-an-order conversational', 'triage-warranty-claim autonomous']);
    expect(bundle.warnings).toEqual([]);
    expect(bundle.withoutEffect).toEqual([]);
  });

  it('returns the key of the agent, or names the variable that is not set', async () => {
    const bundle = await load({ 'manifest.yaml': manifest });

    expect(agentApiKey(bundle, environment)).toBe('secret-agent');
    expect(() => agentApiKey(bundle, {})).toThrow('agent_config.runtime.api_key: the environment variable AGENT_API_KEY is not set');
  });

  it('takes the key of the agent without the line break that a file ends in, and refuses one that no bearer token can have', async () => {
    const files = { 'manifest.yaml': manifest };
    const bundle = await load(files);

    expect(agentApiKey(bundle, { ...environment, AGENT_API_KEY: ' secret-agent\r\n' })).toBe('secret-agent');
    expect(await problemsOf(files, { ...environment, AGENT_API_KEY: ' \n' })).toEqual([
      'manifest.yaml: agent_config.runtime.api_key: the environment variable AGENT_API_KEY is not set',
    ]);
    for (const key of ['secret agent', 'secret\u0007agent', 'secret\u00a0agent'])
      expect(await problemsOf(files, { ...environment, AGENT_API_KEY: key })).toEqual([
        "manifest.yaml: agent_config.runtime.api_key: the environment variable AGENT_API_KEY has a blank or a control character in it, which a bearer token can't have",
      ]);
    expect(await problemsOf(files, { ...environment, AGENT_API_KEY: 'schlüssel-agent' })).toEqual([]);
  });

  function pgvector(password: string) {
    return { hostname: 'db', port: 5432, password, collection: 'docs', embedding_model: 'openai/small', embedding_dimensions: 3 };
  }

  /** Problems of relationships among policies a, b, c (c alone has the label `third`) and routines r, s. */
  function relationships(given: object): Promise<string[]> {
    return problemsOf({
      'manifest.yaml': manifestWith({ policies: v1('a', 'b', 'c'), routines: v1('r', 's'), relationships: given }),
      'documents/policies/a.yaml': policy('a'),
      'documents/policies/b.yaml': policy('b'),
      'documents/policies/c.yaml': policy('c', { labels: ['third'] }),
      'documents/routines/r.yaml': conversational('r'),
      'documents/routines/s.yaml': conversational('s'),
    });
  }
});
