import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { testProgram } from '../../scripts/servers/test-programs.mjs';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { builtInRouter } from '../../services/standalone/built-in-router.ts';
import { agentClient } from '../helpers/agent-client.ts';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { shellBlocks } from '../helpers/documented-blocks.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { documentedIncidents } from '../helpers/incident-page.ts';
import { type AlertCause, alertCauses, type Monitored, openRefusingProviders, REFUSING_MODELS } from '../helpers/monitoring/alert-causes.ts';
import { dashboards } from '../helpers/monitoring/dashboards.ts';
import { type Prometheus, startPrometheus } from '../helpers/monitoring/start-prometheus.ts';
import { plainEnvironment, root } from '../helpers/run-program.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../upstreams/openai-upstream.ts';

/** Their labels are known once the first of them was counted: hedged models, failing endpoints, runs, and blocked event loops. */
const NOT_BEFORE_THEIR_CAUSE = ['hedges per second', 'endpoints down', 'runs per second', 'event loop held per second'];

/** They fire on a machine that is short of CPU, as is right, or with other causes. The rules of all alerts are held by tests/monitoring/alerts.test.ts. */
const OF_A_BUSY_MACHINE = ['EventLoopLate', 'EventLoopHeld', 'CommandsWait', 'HostPaused', 'CommitsRefused', 'WorkRedelivered', 'WorkRefused'];

/** A scrape has a second here, which a held event loop does not keep. */
const OF_A_LATE_SCRAPE = ['PartitionsWithoutOwner', 'ProcessDown'];
const SINCE_ITS_START = 3_600;

const LONG = { timeoutMs: 120_000 };
/** More than the times of first tokens that a worker must know of an endpoint before it hedges, and so many that one late call is beyond 95 of 100. */
const MEASURED_CALLS = 30;
/** Of a busy machine other calls are quicker, too. The call is aborted when the other endpoint answers. */
const LATE_MS = 5_000;

/** For each panel all its queries. */
const panels = Object.values(dashboards()).flatMap((content) => {
  const parsed = JSON.parse(content) as { panels: { title: string; targets: { expr: string }[] }[] };
  return parsed.panels.map(({ title, targets }) => ({ title, queries: targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '60s')) }));
});

/** The last ones add a worker with a wrong clock, and end the only host. */
const LASTING = 2;
const [passing, lasting] = [alertCauses.slice(0, -LASTING), alertCauses.slice(-LASTING)];

let upstream: OpenAiUpstream;
let refusing: Awaited<ReturnType<typeof openRefusingProviders>>;
let receiver: CallbackReceiver;
let cluster: Cluster;
let prometheus: Prometheus;
let monitored: Monitored;

beforeAll(async () => {
  [upstream, refusing, receiver] = await Promise.all([openOpenAiUpstream(), openRefusingProviders(), openCallbackReceiver()]);
  const path = await routerFile();
  const env = {
    ROUTER_CONFIG: path,
    OUTBOUND_ALLOW_HOSTS: receiver.host,
    NODE_OPTIONS: `--import=${pathToFileURL(`${root}tests/helpers/hold-the-loop.mjs`)}`,
  };
  cluster = await startCluster({ env });
  prometheus = await startPrometheus(cluster.processes.map(({ managementUrl }) => new URL(managementUrl).host));
  monitored = { cluster, routerFile: path, scrape: (managementUrl) => prometheus.scrape(new URL(managementUrl).host), complete, say };
}, 180_000);
afterAll(async () => {
  await prometheus?.stop();
  await cluster?.stop();
  await Promise.all([upstream?.close(), refusing?.close(), receiver?.close()]);
});

/** The scripted models, one that is hedged over two endpoints of the upstream, one whose provider does not answer, and those that are refused. */
async function routerFile(): Promise<string> {
  const { providers = [], models = [], keys = [] } = z.record(z.string(), z.array(z.unknown())).parse(builtInRouter({ openAi: null }));
  const provider = (slug: string, baseUrl: string) => ({ slug, kind: 'openai-compatible', base_url: baseUrl });
  const refused = Object.entries(REFUSING_MODELS).map(([id, status]) => ({ id, slug: id.replace('test/', ''), status }));
  const config = {
    providers: [
      ...providers,
      ...['east', 'west'].map((slug) => provider(slug, upstream.baseUrl)),
      provider('gone', `http://127.0.0.1:${await freePort()}/v1`),
      ...refused.map(({ slug, status }) => provider(slug, refusing.baseUrlOf(status))),
    ],
    models: [
      ...models,
      ...refused.map(({ id, slug }) => ({ id, endpoints: [{ provider: slug, upstream_model: slug }] })),
      { id: 'test/hedged', hedge: true, order: 'file', endpoints: ['east', 'west'].map((slug) => ({ provider: slug, upstream_model: slug })) },
      { id: 'test/gone', endpoints: [{ provider: 'gone', upstream_model: 'gone' }] },
    ],
    keys,
  };
  const path = join(await freeFolder('router'), 'router.json');
  await writeFile(path, JSON.stringify(config));
  return path;
}

function client(): OpenAI {
  return new OpenAI({ baseURL: `${cluster.routerUrls[0] ?? ''}/api/v1`, apiKey: cluster.keys.routerKey, maxRetries: 0 });
}

async function complete(model: string, fields: object = {}): Promise<number> {
  const response = await fetch(`${cluster.routerUrls[0]}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${cluster.keys.routerKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...bodyFor(model), ...fields }),
  });
  await response.arrayBuffer();
  return response.status;
}

async function say(text: string): Promise<boolean> {
  const agent = agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
  const said = agent.createSession().then(({ id }) => agent.postMessage(id, text));
  return said.then(
    () => true,
    () => false,
  );
}

const bodyFor = (model: string) => ({ model, messages: [{ role: 'user' as const, content: 'Hello' }] });

/** What the panels wait for whose series no cause of an alert makes. */
const causes: Record<string, () => Promise<void>> = {
  'hedges per second': async () => {
    // A worker takes new measurements into account after some seconds.
    await eventually(async () => {
      for (let call = 0; call < MEASURED_CALLS; call += 1) await client().chat.completions.create(bodyFor('test/hedged'));
      const before = upstream.requests.length;
      upstream.answer({ headersAfterMs: LATE_MS }, {});
      await client().chat.completions.create(bodyFor('test/hedged'));
      return upstream.requests.length > before + 1;
    }, LONG);
  },
  'runs per second': async () => {
    const callback = receiver.address();
    const input = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The pump is loud.' };
    const started = await fetch(`${cluster.agentUrls[0]}/routines/triage-warranty-claim/trigger`, {
      method: 'POST',
      headers: { authorization: `Bearer ${cluster.keys.agentKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ callback_url: callback.url, input }),
    });
    expect(started.status).toBe(202);
    await eventually(() => callback.received.length > 0, LONG);
  },
};

describe('the commands of docs/ for a cluster', () => {
  it('of docs/incidents.md show its hosts, and what doctor finds at its stores', async () => {
    const [hosts, findings] = await outputOf('docs/incidents.md', 'A partition has no owner');

    expect(hosts).toContain('(1 row)');
    expect(findings).toMatch(/^ok +broker/m);
  });

  it('of docs/deploy.md say that the streams are as this release declares them', async () => {
    expect((await outputOf('docs/deploy.md', 'Streams of the broker')).join('')).toContain('CMD');
  });
});

describe('Prometheus with the dashboards and rules of deploy/', () => {
  it('shows a series in every panel that needs no fault and no run, and no alert', async () => {
    const agent = agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
    let without = panels.filter(({ title }) => !NOT_BEFORE_THEIR_CAUSE.includes(title));
    await eventually(async () => {
      const body = bodyFor('scripted/assistant');
      await client().chat.completions.create(body);
      await client().chat.completions.stream(body).finalChatCompletion();
      const { id } = await agent.createSession();
      await agent.postMessage(id, 'How long is the warranty?');
      await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
      without = await withoutSeries(without);
      return without.length === 0;
    }, LONG).catch(() => {});

    expect(without.map(({ title }) => title)).toEqual([]);
    expect(panels.length).toBeGreaterThan(NOT_BEFORE_THEIR_CAUSE.length + 40);
    expect((await firing()).filter((name) => !OF_A_BUSY_MACHINE.includes(name))).toEqual([]);
  });

  it('answers each query of docs/incidents.md', async () => {
    const queries = documentedIncidents().flatMap((incident) => incident.queries);

    expect(queries.length).toBeGreaterThan(12);
    for (const query of queries) await prometheus.query(query);
  });

  it.each(passing)('raises $alerts, and not before: $what', raises, 200_000);

  it('shows a series in each of the other panels once its cause has happened', async () => {
    for (const cause of Object.values(causes)) await cause();
    const others = panels.filter(({ title }) => NOT_BEFORE_THEIR_CAUSE.includes(title));
    let without = others;
    await eventually(async () => {
      without = await withoutSeries(without);
      return without.length === 0;
    }, LONG).catch(() => {});

    expect(without.map(({ title }) => title)).toEqual([]);
    expect(others).toHaveLength(NOT_BEFORE_THEIR_CAUSE.length);
  }, 400_000);

  it.each(lasting)('raises $alerts, and not before: $what', raises, 200_000);
});

async function raises({ alerts, begin, again = async () => {} }: AlertCause): Promise<void> {
  const before = await prometheus.fired(SINCE_ITS_START);
  const mayFire = [...OF_A_BUSY_MACHINE, ...OF_A_LATE_SCRAPE];
  expect(alerts.filter((name) => before.has(name) && !mayFire.includes(name))).toEqual([]);

  const beganAt = performance.now();
  const end = await begin(monitored);
  let missing = [...alerts];
  await eventually(async () => {
    await again(monitored);
    const fired = await prometheus.fired((performance.now() - beganAt) / 1_000);
    missing = alerts.filter((name) => !fired.has(name));
    return missing.length === 0;
  }, LONG)
    .catch(() => {})
    .finally(() => end?.());
  expect(missing).toEqual([]);
}

/** What each line of a section prints; `doctor` ends with 1 for a finding of this machine. */
async function outputOf(page: string, heading: string): Promise<string[]> {
  const path = `${await testProgram('postgresBin')}:${process.env['PATH']}`;
  const environment = { ...plainEnvironment(), ...cluster.environmentOf('operator'), NODE_OPTIONS: '', PATH: path };
  const lines = shellBlocks(page, heading).flatMap((block) => block.trim().split('\n'));
  return Promise.all(
    lines.map(async (line) => {
      const ended = promisify(execFile)('bash', ['-c', line], { timeout: 120_000, cwd: root, env: environment });
      return (await ended.catch((error: { stdout: string }) => error)).stdout;
    }),
  );
}

async function firing(): Promise<string[]> {
  return (await prometheus.query('ALERTS{alertstate="firing"}')).map(({ metric }) => metric.alertname ?? '');
}

async function withoutSeries(shown: typeof panels): Promise<typeof panels> {
  const has = await Promise.all(shown.map(async ({ queries }) => (await Promise.all(queries.map(prometheus.query))).every((series) => series.length > 0)));
  return shown.filter((_, index) => !has[index]);
}
