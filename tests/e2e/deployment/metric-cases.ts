import { beforeAll, describe, expect, it } from 'vitest';
import type { RunEnvelope } from '../../../shared/contracts/agent/run.ts';
import { type MetricKey, metricTable } from '../../../shared/telemetry/metrics.ts';
import type { DeploymentUnderTest } from '../../helpers/deployment-under-test.ts';
import { eventually } from '../../helpers/eventually.ts';
import type { SharedDeployment } from './shared-deployment.ts';

const ROUTINE = 'triage-warranty-claim';
const TIMEOUT = { timeoutMs: 60_000 };
/** Words of a customer that occur nowhere else. */
const WORDS = { call: 'quillwort', turn: 'saxifrage', run: 'toadflax' };

type Labels = Record<string, string>;

/** The metrics of all processes of a deployment at one moment, as lines. */
async function metricLines(deployment: DeploymentUnderTest): Promise<string[]> {
  const texts = await Promise.all(deployment.managementUrls().map(async (url) => (await fetch(`${url}/metrics`)).text()));
  return texts.flatMap((text) => text.split('\n')).filter((line) => line !== '' && !line.startsWith('#'));
}

/** The sum over all series of a metric that have these labels; null when there is none. */
function sumIn(lines: readonly string[], key: MetricKey, labels: Labels = {}, suffix = ''): number | null {
  const values = lines.flatMap((line) => {
    const [, name, given = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const fits = Object.entries(labels).every(([label, wanted]) => given.split(',').includes(`${label}="${wanted}"`));
    return name === metricTable[key].name + suffix && fits ? [Number(value)] : [];
  });
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}

/** For a deployment that has done nothing yet. */
export function metricCases(shared: () => SharedDeployment): void {
  describe('the metrics of a deployment', () => {
    let deployment: DeploymentUnderTest;
    let run: RunEnvelope;
    let sessionId: string;
    let callId: string | null;
    let reply: string;
    /** Metrics after one call, one turn and one run. */
    let lines: string[];

    beforeAll(async () => {
      deployment = shared().deployment;

      const headers = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });
      const call = { model: 'scripted/assistant', stream: true, messages: [{ role: 'user', content: `What is a ${WORDS.call}?` }] };
      const streamed = await fetch(`${deployment.nextRouterUrl()}/api/v1/chat/completions`, {
        method: 'POST',
        headers: headers(deployment.keys.routerKey),
        body: JSON.stringify(call),
      });
      callId = streamed.headers.get('x-generation-id');
      expect(await streamed.text()).toContain('[DONE]');

      sessionId = (await deployment.agent.createSession()).id;
      await deployment.agent.postMessage(sessionId, `Is ${WORDS.turn} covered?`);
      const log = await deployment.agent.logUntil(sessionId, (event) => event.kind === 'status' && event.status === 'ready');
      reply = log.flatMap((event) => (event.kind === 'assistant_message' ? [event.text] : [])).join();

      const callback = shared().receiver.address(204);
      const input = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: `It smells of ${WORDS.run}.` };
      const triggered = await fetch(`${deployment.nextAgentUrl()}/routines/${ROUTINE}/trigger`, {
        method: 'POST',
        headers: headers(deployment.keys.agentKey),
        body: JSON.stringify({ input, callback_url: callback.url }),
      });
      run = (await triggered.json()) as RunEnvelope;
      expect(triggered.status, JSON.stringify(run)).toBe(202);
      await eventually(() => callback.received.length === 1, TIMEOUT);
      // The last step: the result of the callback is applied.
      await eventually(async () => {
        lines = await metricLines(deployment);
        return sumIn(lines, 'callbackAttempts', { outcome: 'delivered' }) === 1 && sumIn(lines, 'effectsOpen') === 0 && sumIn(lines, 'queueDepth') === 0;
      }, TIMEOUT);
    });

    it('DESIGN 12: counts a call, a turn and a run, each once, in the process that did it', () => {
      const sum = (key: MetricKey, labels: Labels = {}, suffix = '') => sumIn(lines, key, labels, suffix);

      expect(sum('httpRequests', { server: 'router', method: 'POST', route: '/api/v1/chat/completions', status: '200' })).toBe(1);
      expect(sum('httpSeconds', { server: 'router', route: '/api/v1/chat/completions' }, '_count')).toBe(1);
      expect(sum('httpRequests', { server: 'agent', method: 'POST', route: '/sessions/:session_id/events', status: '201' })).toBe(1);
      expect(sum('firstTokenSeconds', {}, '_count')).toBe(1);
      // That of the test, and those of the evaluation of the agent's documents, which goes on in the background.
      const clientCalls = sum('routerCalls', { kind: 'client', outcome: 'completed' }) ?? 0;
      expect(clientCalls).toBeGreaterThanOrEqual(1);
      const actorCalls = sum('routerCalls', { kind: 'actor', outcome: 'completed' }) ?? 0;
      expect(actorCalls).toBeGreaterThanOrEqual(2);
      expect(sum('upstreamAttempts', { provider: 'scripted', outcome: 'ok' })).toBe(clientCalls + actorCalls);
      expect(sum('upstreamSeconds', { provider: 'scripted' }, '_count')).toBe(clientCalls + actorCalls);
      for (const kind of ['prompt', 'completion']) expect(sum('tokens', { provider: 'scripted', kind })).toBeGreaterThan(0);
      expect(sum('turns', { outcome: 'completed' })).toBe(1);
      expect(sum('turns')).toBe(1);
      expect(sum('turnSeconds', {}, '_count')).toBe(1);
      expect(sum('runs', { outcome: 'succeeded' })).toBe(1);
      expect(sum('runs')).toBe(1);
      expect(sum('runSeconds', {}, '_count')).toBe(1);
      expect(sum('callbackAttempts')).toBe(1);
    });

    it('DESIGN 12: shows how far the hosts are, and that nothing is left or was lost', () => {
      const sum = (key: MetricKey, labels: Labels = {}, suffix = '') => sumIn(lines, key, labels, suffix);

      expect(sum('partitionsOwned')).toBe(64);
      expect(sum('commits', { outcome: 'committed' })).toBe(sum('commitSeconds', {}, '_count'));
      expect(sum('commitCommands', {}, '_sum')).toBeGreaterThan(5);
      expect(sum('commandsWaiting')).toBe(0);
      expect(sum('oldestCommandSeconds')).toBe(0);
      expect(sum('logBehind')).toBeGreaterThanOrEqual(0);
      for (const key of ['fences', 'deadLetters', 'redeliveries', 'leasesLost', 'telemetryDropped', 'streamsOpen'] as const) expect(sum(key), key).toBe(0);
      for (const kind of ['router.turn', 'router.call', 'tool', 'delivery']) expect(sum('queueDepth', { kind }), kind).toBe(0);
    });

    it('DESIGN 12: counts a long-poll for as long as it is open', async () => {
      const left = new AbortController();
      const open = async () => sumIn(await metricLines(deployment), 'streamsOpen', { kind: 'agent_long_poll' });
      const head = (await deployment.agent.readSession(sessionId)).last_offset + 1;
      const poll = fetch(`${deployment.nextAgentUrl()}/sessions/${sessionId}/events?min_offset=${head}`, {
        headers: { authorization: `Bearer ${deployment.keys.agentKey}` },
        signal: left.signal,
      }).catch(() => null);

      await eventually(async () => (await open()) === 1, TIMEOUT);
      left.abort();
      await poll;
      await eventually(async () => (await open()) === 0, TIMEOUT);
    });

    it('has no id among its labels, and is not served at a public port', async () => {
      const text = lines.join('\n');
      for (const id of [sessionId, run.run_id, String(callId), deployment.keys.routerKey]) expect(text).not.toContain(id);
      for (const url of [deployment.nextRouterUrl(), deployment.nextAgentUrl()]) expect([401, 404]).toContain((await fetch(`${url}/metrics`)).status);
    });

    it('DESIGN 12: writes lines that name the trace, the session, the run and the call, and no word of a customer or a model', () => {
      const written = deployment.logLines().filter(({ level }) => ['info', 'warn', 'error', 'fatal'].includes(level));
      const about = (msg: string) => written.filter((line) => line.msg === msg);

      const ended = about('a router call has ended');
      expect(ended).toContainEqual(expect.objectContaining({ call_id: callId, trace_id: expect.any(String), key_id: expect.any(String) }));
      expect(ended).toContainEqual(expect.objectContaining({ session_id: sessionId, turn_id: expect.any(String), trace_id: expect.any(String) }));
      expect(ended).toContainEqual(expect.objectContaining({ session_id: run.session_id, run_id: run.run_id, trace_id: expect.any(String) }));
      expect(about('request')).toContainEqual(
        expect.objectContaining({ call_id: callId, request_id: expect.any(String), key_id: expect.any(String), status: 200 }),
      );
      expect(about('a turn ended')).toMatchObject([
        { session_id: sessionId, turn_id: expect.any(String), outcome: 'completed', duration_ms: expect.any(Number) },
      ]);
      expect(about('a run ended')).toMatchObject([{ session_id: run.session_id, run_id: run.run_id, outcome: 'succeeded' }]);

      const text = JSON.stringify(written);
      expect(reply).toMatch(/\w+ \w+/);
      for (const words of [...Object.values(WORDS), JSON.stringify(reply).slice(1, -1)]) expect(text).not.toContain(words);
      // Ids have one spelling.
      expect(text).not.toMatch(/"(traceId|sessionId|runId|turnId|callId|requestId|keyId|messageId)":/);
    });
  });
}
