import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { dashboards } from '../helpers/monitoring/dashboards.ts';
import { type Prometheus, startPrometheus } from '../helpers/monitoring/start-prometheus.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

/** Their labels are known once the first of them was counted: hedged models, failing endpoints, runs, and blocked event loops. */
const NOT_BEFORE_THEIR_CAUSE = ['hedges per second', 'endpoints down', 'runs per second', 'event loop held per second'];

/** They fire on a machine that is short of CPU, as is right. The rules of all alerts are held by tests/monitoring/alerts.test.ts. */
const OF_A_BUSY_MACHINE = ['EventLoopLate', 'EventLoopHeld', 'CommandsWait', 'HostPaused', 'CommitsRefused', 'WorkRedelivered', 'WorkRefused'];

/** For each panel all its queries. */
const panels = Object.values(dashboards()).flatMap((content) => {
  const parsed = JSON.parse(content) as { panels: { title: string; targets: { expr: string }[] }[] };
  return parsed.panels.map(({ title, targets }) => ({ title, queries: targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '60s')) }));
});

let cluster: Cluster;
let prometheus: Prometheus;

beforeAll(async () => {
  cluster = await startCluster();
  prometheus = await startPrometheus(cluster.processes.map(({ managementUrl }) => new URL(managementUrl).host));
}, 180_000);
afterAll(async () => {
  await prometheus?.stop();
  await cluster?.stop();
});

describe('Prometheus with the dashboards and rules of deploy/', () => {
  it('shows a series in every panel that needs no fault and no run, and no alert', async () => {
    const [routerUrl = ''] = cluster.routerUrls;
    const client = new OpenAI({ baseURL: `${routerUrl}/api/v1`, apiKey: cluster.keys.routerKey, maxRetries: 0 });
    const agent = agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
    let without = panels.filter(({ title }) => !NOT_BEFORE_THEIR_CAUSE.includes(title));
    await eventually(
      async () => {
        const body = { model: 'scripted/assistant', messages: [{ role: 'user' as const, content: 'Hello' }] };
        await client.chat.completions.create(body);
        await client.chat.completions.stream(body).finalChatCompletion();
        const { id } = await agent.createSession();
        await agent.postMessage(id, 'How long is the warranty?');
        await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
        without = await withoutSeries(without);
        return without.length === 0;
      },
      { timeoutMs: 60_000 },
    ).catch(() => {});

    expect(without.map(({ title }) => title)).toEqual([]);
    expect(panels.length).toBeGreaterThan(NOT_BEFORE_THEIR_CAUSE.length + 40);
    expect((await firing()).filter((name) => !OF_A_BUSY_MACHINE.includes(name))).toEqual([]);
  });

  it('raises the alerts of a host that was killed, whose partitions have no other', async () => {
    cluster.running('actor-host')[0]?.signal('SIGKILL');

    await eventually(async () => {
      const alerts = await firing();
      return alerts.includes('PartitionsWithoutOwner') && alerts.includes('ProcessDown');
    });
  });
});

async function firing(): Promise<string[]> {
  return (await prometheus.query('ALERTS{alertstate="firing"}')).map(({ metric }) => metric.alertname ?? '');
}

async function withoutSeries(shown: typeof panels): Promise<typeof panels> {
  const has = await Promise.all(shown.map(async ({ queries }) => (await Promise.all(queries.map(prometheus.query))).every((series) => series.length > 0)));
  return shown.filter((_, index) => !has[index]);
}
