import { mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { loadedRouterConfig } from '../../shared/config/loaded-router-config.ts';
import { routerConfig } from '../../shared/config/router-config.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { startStandalone } from '../helpers/start-standalone.ts';
import { tier } from '../helpers/tier.ts';
import { openCountedUpstream } from '../reload/counted-upstream.ts';

const LONG = { timeoutMs: 60_000 };
const RELOADS = tier === 'deep' ? 200 : 10;
const INVALID_EVERY = tier === 'deep' ? 10 : 5;
const CLIENTS = 6;
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
  let file: Awaited<ReturnType<typeof routerFile>>;
  beforeAll(async () => {
    file = await routerFile(first);
    const roles = { 'router-gateway': 2, 'router-worker': 2, 'agent-gateway': 0, 'actor-host': 0, 'effect-worker': 0 };
    cluster = await startCluster({ roles, env: { ...secrets, ROUTER_CONFIG: file.path } });
  });
  afterAll(() => cluster?.stop());

  /** What each process says of itself. */
  const metricsOfAll = () => Promise.all(cluster.processes.map(async ({ managementUrl }) => (await fetch(`${managementUrl}/metrics`)).text()));
  const refusedIn = (metrics: string) => Number(/switchyard_config_reloads_total\{outcome="refused"\} (\d+)/.exec(metrics)?.[1]);

  it('DESIGN 10: two gateways and two workers serve models and keys of their file as it is now, each by itself, and fail no call meanwhile', async () => {
    const { write } = file;
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
    await eventually(async () => (await metricsOfAll()).map(refusedIn).join() === '1,1,1,1', LONG);
    write({ models: ['acme/one'], keys: [{ variable: 'FIRST_KEY' }] });
    for (const router of routers) await eventually(async () => (await router.models()) === 'acme/one', LONG);
    for (const router of third) expect(await router.status()).toBe(401);
    isOver = true;
    await Promise.all(load);
    expect([...statuses.keys()]).toEqual([200]);
  });

  it('reloads many times under load, with some files invalid: no request fails, and no connection is left', { timeout: 1_200_000 }, async () => {
    const [steady, changing] = await Promise.all([openCountedUpstream(), openCountedUpstream()]);
    onTestFinished(async () => {
      await Promise.all([steady.close(), changing.close()]);
    });
    const contentOf = (version: number) => ({
      providers: [
        { slug: 'steady', kind: 'openai-compatible', base_url: `${steady.url}/v1` },
        { slug: 'changing', kind: 'openai-compatible', base_url: `${changing.url}/version-${version}` },
      ],
      models: ['steady', 'changing'].map((provider) => ({ id: `acme/${provider}`, endpoints: [{ provider, upstream_model: 'm' }] })),
      keys: [{ id: 'first-key', key: '${FIRST_KEY}' }],
    });
    const isInForce = async (content: object) => {
      const sample = `switchyard_config_in_force_since_seconds{hash="${loadedRouterConfig(routerConfig.parse(content), content).hash}"}`;
      return (await metricsOfAll()).every((metrics) => metrics.includes(sample));
    };
    const use = async (content: object) => {
      file.write(JSON.stringify(content));
      await eventually(() => isInForce(content), LONG);
    };
    await use(contentOf(0));
    let isOver = false;
    const statuses = new Map<number, number>();
    const load = Array.from({ length: CLIENTS }, async (_, client) => {
      const router = routerAt(cluster.routerUrls[client % 2] ?? '', secrets.FIRST_KEY);
      for (let call = client; !isOver; call += 1) {
        const status = await router.ask(call % 3 === 0 ? 'acme/steady' : 'acme/changing');
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    });

    let refused = (await metricsOfAll()).map(refusedIn);
    for (let version = 1; version <= RELOADS; version += 1) {
      const isInvalid = version % INVALID_EVERY === 0;
      // Some read it at once, in another order each time, and the others when they look at it.
      const signalled = cluster.processes.filter((_, index) => (version >> index) % 2 === 1);
      if (isInvalid) {
        file.write(JSON.stringify({ ...contentOf(version), keys: [] }));
        for (const one of signalled) one.signal('SIGHUP');
        await eventually(async () => (await metricsOfAll()).every((metrics, index) => refusedIn(metrics) > (refused[index] ?? 0)), LONG);
        refused = (await metricsOfAll()).map(refusedIn);
      } else {
        file.write(JSON.stringify(contentOf(version)));
        for (const one of signalled) one.signal('SIGHUP');
        await eventually(() => isInForce(contentOf(version)), LONG);
      }
    }
    isOver = true;
    await Promise.all(load);

    expect([...statuses.keys()]).toEqual([200]);
    expect(statuses.get(200)).toBeGreaterThan(RELOADS);
    expect(changing.posts.size).toBeGreaterThan(RELOADS / 2);
    // A block that is the same keeps its adapter, and its connections with it.
    expect(steady.opened()).toBeLessThan(changing.opened() / 2);
    // Each worker has one configuration in force and four former ones.
    expect(changing.open()).toBeLessThanOrEqual(2 * 5 * CLIENTS);
    console.info(`${RELOADS} reloads: ${statuses.get(200)} calls, ${steady.opened()} and ${changing.opened()} connections opened, ${changing.open()} open`);
  });
});
