import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testProgram } from '../../scripts/servers/test-programs.mjs';
import { agentClient } from '../helpers/agent-client.ts';
import { shellBlocks } from '../helpers/documented-blocks.ts';
import { eventually } from '../helpers/eventually.ts';
import { documentedIncidents } from '../helpers/incident-page.ts';
import { alertCauses } from '../helpers/monitoring/alert-causes.ts';
import { dashboards } from '../helpers/monitoring/dashboards.ts';
import { type Monitored, startMonitored } from '../helpers/monitoring/monitored-cluster.ts';
import { firingWithoutCause, RAISES_WITHIN_MS, raises } from '../helpers/monitoring/raise-alerts.ts';
import { plainEnvironment, root } from '../helpers/run-program.ts';

/** Their labels are known once the first of them was counted: hedged models, failing endpoints, runs, and blocked event loops. */
const NOT_BEFORE_THEIR_CAUSE = ['hedges per second', 'endpoints down', 'runs per second', 'event loop held per second'];

/** No store is away here, so no gauge is waited for. */
const SCRAPE_SECONDS = 2;
const LONG = { timeoutMs: 120_000 };
/** Beyond all that a case waits for. */
const CASE_MS = 400_000;
const CALL_MS = 60_000;
/** More than the times of first tokens that a worker must know of an endpoint before it hedges, and so many that one late call is beyond 95 of 100. */
const MEASURED_CALLS = 30;
/** Of a busy machine other calls are quicker, too. The call is aborted when the other endpoint answers. */
const LATE_MS = 5_000;

/** For each panel all its queries. */
const panels = Object.values(dashboards()).flatMap((content) => {
  const parsed = JSON.parse(content) as { panels: { title: string; targets: { expr: string }[] }[] };
  return parsed.panels.map(({ title, targets }) => ({ title, queries: targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '60s')) }));
});

let monitored: Monitored;

beforeAll(async () => {
  monitored = await startMonitored({ scrapeSeconds: SCRAPE_SECONDS });
}, 300_000);
afterAll(() => monitored?.stop(), 300_000);

function client(): OpenAI {
  const { cluster } = monitored;
  return new OpenAI({ baseURL: `${cluster.routerUrls[0] ?? ''}/api/v1`, apiKey: cluster.keys.routerKey, maxRetries: 0, timeout: CALL_MS });
}

const bodyFor = (model: string) => ({ model, messages: [{ role: 'user' as const, content: 'Hello' }] });

/** What the panels wait for whose series no cause of an alert makes. */
const causes: Record<string, () => Promise<void>> = {
  'hedges per second': async () => {
    // A worker takes new measurements into account after some seconds.
    const { upstream } = monitored;
    await eventually(async () => {
      for (let call = 0; call < MEASURED_CALLS; call += 1) await client().chat.completions.create(bodyFor('test/hedged'));
      const before = upstream.requests.length;
      upstream.answer({ headersAfterMs: LATE_MS }, {});
      await client().chat.completions.create(bodyFor('test/hedged'));
      return upstream.requests.length > before + 1;
    }, LONG);
  },
  'runs per second': async () => {
    const { cluster, receiver } = monitored;
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
  it(
    'shows a series in every panel that needs no fault and no run, and no alert',
    async () => {
      const { cluster } = monitored;
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
      expect(await firingWithoutCause(monitored)).toEqual([]);
    },
    CASE_MS,
  );

  it('answers each query of docs/incidents.md', async () => {
    const queries = documentedIncidents().flatMap((incident) => incident.queries);

    expect(queries.length).toBeGreaterThan(12);
    for (const query of queries) await monitored.prometheus.query(query);
  });

  it.each(alertCauses)('raises $alerts, and not before: $what', (cause) => raises(cause, monitored), RAISES_WITHIN_MS);

  it(
    'shows a series in each of the other panels once its cause has happened',
    async () => {
      for (const cause of Object.values(causes)) await cause();
      const others = panels.filter(({ title }) => NOT_BEFORE_THEIR_CAUSE.includes(title));
      let without = others;
      await eventually(async () => {
        without = await withoutSeries(without);
        return without.length === 0;
      }, LONG).catch(() => {});

      expect(without.map(({ title }) => title)).toEqual([]);
      expect(others).toHaveLength(NOT_BEFORE_THEIR_CAUSE.length);
    },
    CASE_MS,
  );
});

/** What each line of a section prints; `doctor` ends with 1 for a finding of this machine. */
async function outputOf(page: string, heading: string): Promise<string[]> {
  const path = `${await testProgram('postgresBin')}:${process.env['PATH']}`;
  const environment = { ...plainEnvironment(), ...monitored.cluster.environmentOf('operator'), NODE_OPTIONS: '', PATH: path };
  const lines = shellBlocks(page, heading).flatMap((block) => block.trim().split('\n'));
  return Promise.all(
    lines.map(async (line) => {
      const ended = promisify(execFile)('bash', ['-c', line], { timeout: 120_000, cwd: root, env: environment });
      return (await ended.catch((error: { stdout: string }) => error)).stdout;
    }),
  );
}

async function withoutSeries(shown: typeof panels): Promise<typeof panels> {
  const has = await Promise.all(
    shown.map(async ({ queries }) => (await Promise.all(queries.map(monitored.prometheus.query))).every((series) => series.length > 0)),
  );
  return shown.filter((_, index) => !has[index]);
}
