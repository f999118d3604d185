import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Bus } from '../../bus/bus.ts';
import { openMemoryBus } from '../../bus/memory/memory-bus.ts';
import { openTestApp, type TestApp } from '../../services/router-gateway/test-support/harness.ts';
import { providerBlock } from '../../services/router-worker/providers/registry.ts';
import { startRouterWorker } from '../../services/router-worker/service.ts';
import { systemClock } from '../../shared/clock.ts';
import { type OpenedRouterConfig, openRouterConfig } from '../../shared/config/open-router-config.ts';
import type { Database } from '../../shared/storage/database.ts';
import { openTestDatabase } from '../../shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { noMetrics } from '../../shared/telemetry/metrics.ts';
import { tier } from '../helpers/tier.ts';
import { type CountedUpstream, openCountedUpstream } from './counted-upstream.ts';

const RELOADS = tier === 'deep' ? 200 : 60;
/** Every tenth file has an error. */
const INVALID_EVERY = 10;
const CLIENTS = 6;
/** One configuration is in force, and so many former ones are kept. */
const KEPT = 5;
/** By reloads of the test, not by looks at the file. */
const POLL_MS = 3_600_000;
const environment = { KEY: 'sk-caller' };
const headers = { authorization: 'Bearer sk-caller', 'content-type': 'application/json' };

let folder: string;
let path: string;
let database: Database;
let bus: Bus;
let steady: CountedUpstream;
let changing: CountedUpstream;
let ofGateway: OpenedRouterConfig;
let ofWorker: OpenedRouterConfig;
let gateway: TestApp;
let worker: { stop(): Promise<void> };
let url: string;
/** Warnings of the worker. */
let lines: string[];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'switchyard-reload-'));
  path = join(folder, 'router.json');
  [steady, changing, database] = await Promise.all([openCountedUpstream(), openCountedUpstream(), openTestDatabase()]);
  bus = await openMemoryBus({ database, clock: systemClock });
  writeVersion(0);
  lines = [];
  const log = { ...silentLog, warn: (_: object, line: string) => void lines.push(line) };
  const deps = { clock: systemClock, log: silentLog, metrics: noMetrics, pollMs: POLL_MS };
  ofGateway = await openRouterConfig({ path, environment, use: { secrets: 'keys' } }, deps);
  ofWorker = await openRouterConfig({ path, environment, use: { secrets: 'calls', provider: providerBlock } }, deps);
  worker = await startRouterWorker({ config: ofWorker.living, environment, bus, database, cache: null, log, clock: systemClock });
  gateway = openTestApp(bus, { config: ofGateway.living, variables: environment });
  url = await gateway.app.listen({ host: '127.0.0.1', port: 0 });
});

afterEach(async () => {
  await gateway.close();
  await worker.stop();
  await Promise.all([ofGateway.stop(), ofWorker.stop()]);
  await bus.close();
  await database.close();
  await Promise.all([steady.close(), changing.close()]);
  rmSync(folder, { recursive: true });
});

/** The block of `steady` never changes; that of `changing`, and the name of one model, change with each version. */
function writeVersion(version: number, errors: object = {}): void {
  const endpoint = (provider: string, name = 'm') => ({ provider, upstream_model: name });
  const file = {
    providers: [
      { slug: 'steady', kind: 'openai-compatible', base_url: `${steady.url}/v1` },
      { slug: 'changing', kind: 'openai-compatible', base_url: `${changing.url}/version-${version}` },
    ],
    models: [
      { id: 'acme/steady', endpoints: [endpoint('steady')] },
      { id: 'acme/changing', endpoints: [endpoint('changing')] },
      { id: 'acme/held', endpoints: [endpoint('changing', 'held')] },
      { id: `acme/only-${version}`, endpoints: [endpoint('changing')] },
    ],
    keys: [{ id: 'k', key: '${KEY}' }],
    ...errors,
  };
  writeFileSync(path, JSON.stringify(file));
}

async function ask(model: string, stream = false): Promise<string> {
  const body = JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'Hello' }] });
  const response = await fetch(`${url}/api/v1/chat/completions`, { method: 'POST', headers, body });
  const text = await response.text();
  if (response.status !== 200 || (stream && !text.endsWith('data: [DONE]\n\n')) || text.includes('"error"')) throw new Error(`${response.status} ${text}`);
  return text;
}

it('DESIGN 10: reloads many times under load, with every tenth file invalid: no request fails, and no connection is left', {
  timeout: 300_000,
}, async () => {
  let isOver = false;
  let answers = 0;
  const load = Array.from({ length: CLIENTS }, async (_, client) => {
    for (let call = client; !isOver; call += 1) {
      await ask(call % 2 === 0 ? 'acme/steady' : 'acme/changing', call % 3 === 0);
      answers += 1;
    }
  });
  let latest = 0;
  const reloading = (async () => {
    for (let version = 1; version <= RELOADS; version += 1) {
      const isInvalid = version % INVALID_EVERY === 0;
      writeVersion(version, isInvalid ? { models: [{ id: 'acme/nothing', endpoints: [] }] } : {});
      if (!isInvalid) latest = version;
      const files = [ofGateway, ofWorker];
      // Neither order is the right one.
      for (const file of version % 2 === 0 ? files : files.reverse()) {
        await file.reload();
        const before = answers;
        await expect.poll(() => answers > before, { timeout: 60_000, interval: 1 }).toBe(true);
      }
    }
  })();
  await Promise.race([reloading, ...load]);
  await reloading;
  isOver = true;
  await Promise.all(load);

  expect(answers).toBeGreaterThan(RELOADS);
  expect(await ask('acme/changing')).toContain(`Hello of /version-${latest}/`);
  // A block that is the same keeps its adapter, and its connections with it.
  expect(steady.opened()).toBeLessThan(RELOADS / 4);
  expect(changing.posts.size).toBeGreaterThan(RELOADS / 2);
  await expect.poll(changing.open, { timeout: 60_000 }).toBeLessThanOrEqual(KEPT * CLIENTS);
  await worker.stop();
  worker = { stop: async () => {} };
  await expect.poll(() => steady.open() + changing.open(), { timeout: 60_000 }).toBe(0);
});

it('lets a call end on the connection of a provider that was removed meanwhile, and closes that then', async () => {
  const held = ask('acme/held');
  await expect.poll(() => changing.posts.size, { timeout: 60_000 }).toBe(1);
  for (let version = 1; version <= KEPT + 1; version += 1) {
    writeVersion(version);
    await ofGateway.reload();
    await ofWorker.reload();
  }
  expect(changing.open()).toBe(1);
  changing.release();

  expect(await held).toContain('Hello of /version-0/');
  await expect.poll(changing.open, { timeout: 60_000 }).toBe(0);
});

it('DESIGN 10: a call that the gateway admits under a file that the worker has not read yet waits until it has', async () => {
  writeVersion(1);
  await ofGateway.reload();
  const early = ask('acme/only-1');
  await expect.poll(() => lines, { timeout: 60_000 }).toContainEqual(expect.stringContaining('it is given back'));
  expect(changing.posts.size).toBe(0);
  await ofWorker.reload();

  expect(await early).toContain('Hello of /version-1/');
});

it('DESIGN 10: a call that the gateway admits under a file that the worker has replaced already is served as that file says', async () => {
  writeVersion(1);
  await ofWorker.reload();
  expect(await ask('acme/only-0', true)).toContain('/version-0/');
  await ofGateway.reload();
  expect(await ask('acme/only-1', true)).toContain('/version-1/');
  await expect(ask('acme/only-0')).rejects.toThrow('400');
});
