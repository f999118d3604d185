import { mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { startStandalone } from '../helpers/start-standalone.ts';

const LONG = { timeoutMs: 60_000 };
const secrets = { FIRST_KEY: 'sk-first-0123456789', SECOND_KEY: 'sk-second-0123456789', THIRD_KEY: 'sk-third-0123456789' };

interface File {
  models: string[];
  keys: { variable: keyof typeof secrets; disabled?: boolean }[];
}

async function routerFile(file: File): Promise<{ path: string; write(file: File | string): void }> {
  const folder = mkdtempSync(join(await freeFolder('reload'), 'router-'));
  const path = join(folder, 'router.json');
  const write = (content: File | string) => {
    writeFileSync(`${path}.new`, typeof content === 'string' ? content : textOf(content));
    renameSync(`${path}.new`, path);
  };
  write(file);
  return { path, write };
}

function textOf({ models, keys }: File): string {
  return JSON.stringify({
    providers: [{ slug: 'scripted', kind: 'scripted' }],
    models: models.map((id, index) => ({
      id,
      ...(index === 0 && { aliases: ['switchyard/assistant'] }),
      endpoints: [{ provider: 'scripted', upstream_model: 'assistant' }],
    })),
    keys: keys.map(({ variable, disabled = false }) => ({ id: variable.toLowerCase().replace('_', '-'), key: `\${${variable}}`, disabled })),
  });
}

function routerAt(url: string, key: string) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return {
    models: async () => {
      const { data } = (await (await fetch(`${url}/api/v1/models`, { headers })).json()) as { data: { id: string }[] };
      return data.map(({ id }) => id).join();
    },
    ask: async (model: string) => {
      const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] });
      const response = await fetch(`${url}/api/v1/chat/completions`, { method: 'POST', headers, body });
      await response.text();
      return response.status;
    },
    status: async () => (await fetch(`${url}/api/v1/models`, { headers })).status,
  };
}

const first: File = { models: ['acme/one'], keys: [{ variable: 'FIRST_KEY' }, { variable: 'SECOND_KEY' }] };

describe('npm start', () => {
  it('serves the models and keys of its file as it is now, and the last valid one', async () => {
    const { path, write } = await routerFile(first);
    const standalone = await startStandalone({ env: { ...secrets, ROUTER_CONFIG: path } });
    const [one, two, three] = Object.values(secrets).map((key) => routerAt(standalone.routerUrl, key));
    if (one === undefined || two === undefined || three === undefined) throw new TypeError('there are three keys');
    expect([await one.models(), await two.status(), await three.status()]).toEqual(['acme/one', 200, 401]);

    write({ models: ['acme/one', 'acme/two'], keys: [{ variable: 'FIRST_KEY' }, { variable: 'SECOND_KEY', disabled: true }, { variable: 'THIRD_KEY' }] });
    await eventually(async () => (await one.models()) === 'acme/one,acme/two', LONG);
    expect([await two.status(), await three.status(), await one.ask('acme/two')]).toEqual([401, 200, 200]);

    // The agent's models must be among them, as at the start.
    write(textOf({ models: ['acme/one'], keys: [{ variable: 'FIRST_KEY' }] }).replace('switchyard/assistant', 'acme/other'));
    await eventually(() => standalone.output().includes('the router has no model'), LONG);
    expect([await one.models(), await one.ask('acme/two')]).toEqual(['acme/one,acme/two', 200]);

    write({ models: ['acme/three'], keys: [{ variable: 'THIRD_KEY' }] });
    process.kill(standalone.pid, 'SIGHUP');
    await eventually(async () => (await three.models()) === 'acme/three', LONG);
    expect([await one.status(), await three.ask('acme/three')]).toEqual([401, 200]);
    expect((await standalone.stop()).code).toBe(0);
  });
});

describe('a cluster', () => {
  let cluster: Cluster;
  afterAll(() => cluster.stop());

  it('DESIGN 10: two gateways and two workers serve models and keys of their file as it is now, each by itself, and fail no call meanwhile', async () => {
    const { path, write } = await routerFile(first);
    const roles = { 'router-gateway': 2, 'router-worker': 2, 'agent-gateway': 1, 'actor-host': 1, 'effect-worker': 1 };
    cluster = await startCluster({ roles, env: { ...secrets, ROUTER_CONFIG: path } });
    const routers = cluster.routerUrls.map((url) => routerAt(url, secrets.FIRST_KEY));
    const third = cluster.routerUrls.map((url) => routerAt(url, secrets.THIRD_KEY));
    let isOver = false;
    const statuses = new Map<number, number>();
    const load = routers.map(async (router) => {
      while (!isOver) {
        const status = await router.ask('acme/one');
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    });

    write({ models: ['acme/one', 'acme/two'], keys: [...first.keys, { variable: 'THIRD_KEY' }] });
    for (const router of routers) {
      await eventually(async () => (await router.models()) === 'acme/one,acme/two', LONG);
      // Whatever the worker has read.
      expect(await router.ask('acme/two')).toBe(200);
    }
    for (const router of third) expect(await router.ask('acme/two')).toBe(200);

    write('{');
    for (const { role, managementUrl } of cluster.processes.filter(({ role: name }) => name.startsWith('router-'))) {
      const refused = async () => /switchyard_config_reloads_total\{outcome="refused"\} 1/.test(await (await fetch(`${managementUrl}/metrics`)).text());
      await eventually(refused, LONG);
      expect(role).toMatch(/^router-/);
    }
    write({ models: ['acme/one'], keys: [{ variable: 'FIRST_KEY' }] });
    for (const router of routers) await eventually(async () => (await router.models()) === 'acme/one', LONG);
    for (const router of third) expect(await router.status()).toBe(401);
    isOver = true;
    await Promise.all(load);
    expect([...statuses.keys()]).toEqual([200]);
  });
});
