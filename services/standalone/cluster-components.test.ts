import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { clusterComponents } from './cluster-components.ts';

const urls = { routerUrls: ['http://127.0.0.1:1', 'http://127.0.0.1:2'], agentUrls: ['http://127.0.0.1:3'] };
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchyard-parts-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('the output of npm run cluster about its keys', () => {
  it('is the generated ones on a terminal alone; else it names a file that its owner alone can read', async () => {
    const described = async (isTerminal: boolean) => (await clusterComponents({}, { isTerminal })).describe({ ...urls, folder });
    const shown = await described(true);
    const first = JSON.parse(await readFile(shown.keysFile, 'utf8')) as Record<string, string>;
    for (const key of [first.router_key, first.router_management_key, first.agent_key]) expect(shown.text.split('\n')).toContain(key);
    const hidden = await described(false);
    const second = JSON.parse(await readFile(hidden.keysFile, 'utf8')) as Record<string, string>;

    for (const key of Object.values(second)) expect(hidden.text).not.toContain(key);
    expect(hidden.text).toContain(`router_key in ${hidden.keysFile}`);
    expect((await stat(hidden.keysFile)).mode & 0o777).toBe(0o600);
  });

  it('is the variable of a key that the operator gave, which is written nowhere', async () => {
    const given = {
      ROUTER_API_KEY: 'sk-router-of-the-operator',
      ROUTER_MANAGEMENT_KEY: 'sk-management-of-the-operator',
      AGENT_API_KEY: 'sk-agent-of-the-operator',
    };
    const { describe: describeCluster, environment } = await clusterComponents(given, { isTerminal: true });
    const { text, keysFile } = await describeCluster({ ...urls, folder });

    expect(environment).toMatchObject(given);
    expect(await readFile(keysFile, 'utf8')).toBe('{}\n');
    for (const written of [text, await readFile(join(folder, 'running.json'), 'utf8')]) {
      for (const [name, key] of Object.entries(given)) {
        // Only requests to models and agents need running.json.
        if (name !== 'ROUTER_MANAGEMENT_KEY' || written === text) expect(written).toContain(name);
        expect(written).not.toContain(key);
      }
    }
  });
});

it('npm run ask finds all addresses of a cluster, and that it is one', async () => {
  const { describe: describeCluster } = await clusterComponents({}, { isTerminal: false });
  await describeCluster({ ...urls, folder });

  const { router, agent, ...facts } = JSON.parse(await readFile(join(folder, 'running.json'), 'utf8'));
  expect(facts).toEqual({ kind: 'cluster', pid: process.pid });
  expect(router).toMatchObject({ url: urls.routerUrls[0], urls: urls.routerUrls });
  expect(agent).toMatchObject({ url: urls.agentUrls[0], urls: urls.agentUrls });
});

describe('a router file of one’s own', () => {
  const router = (model: string) => `
providers: [{ slug: local, kind: openai-compatible, base_url: "http://127.0.0.1:9/v1" }]
models: [{ id: local/small, aliases: ["${model}"], endpoints: [{ provider: local, upstream_model: small }] }]
keys: [{ id: shop, key: "\${SHOP_KEY}" }]
`;

  it('is described by its models and its keys, without keys that it would refuse', async () => {
    const ROUTER_CONFIG = join(folder, 'router.yaml');
    await writeFile(ROUTER_CONFIG, router('switchyard/assistant'));
    const { describe: describeCluster } = await clusterComponents({ ROUTER_CONFIG, SHOP_KEY: 'of-the-shop' }, { isTerminal: true });
    const { text, keysFile } = await describeCluster({ ...urls, folder });

    expect(text).toContain('local/small');
    expect(text).toContain('    key          $SHOP_KEY\n');
    expect(text).not.toMatch(/router_key|OPENAI|of-the-shop/);
    expect(Object.keys(JSON.parse(await readFile(keysFile, 'utf8')))).toEqual(['agent_key']);
  });

  it('DESIGN 10: a model that the manifest names and the router does not have ends the start, by name', async () => {
    const ROUTER_CONFIG = join(folder, 'router.yaml');
    await writeFile(ROUTER_CONFIG, router('other/name'));

    await expect(clusterComponents({ ROUTER_CONFIG, SHOP_KEY: 'of-the-shop' }, { isTerminal: false })).rejects.toMatchObject({
      code: 'config.invalid',
      message: expect.stringMatching(
        /1 error:\n {2}agent_config\.llms\.default: the router has no model "switchyard\/assistant": use one of its models \(local\/small, other\/name\)/,
      ),
    });
  });
});

it('an agent of one’s own without its variables ends the start with what to do', async () => {
  const MANIFEST = fileURLToPath(new URL('../../examples/acme-support/manifest.yaml', import.meta.url));

  await expect(clusterComponents({ MANIFEST }, { isTerminal: false })).rejects.toMatchObject({
    code: 'config.invalid',
    message: expect.stringMatching(
      / has 4 errors:\n(?: {2}.* is not set\n){4}Set these variables before the start, for example in \.env: .* the sample agent alone\.$/,
    ),
  });
});
