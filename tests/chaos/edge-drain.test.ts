import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { type OpenStream, openStream } from '../helpers/open-stream.ts';
import { openOtlpSink } from '../helpers/otlp-sink.ts';
import { readStream } from '../helpers/read-stream.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { followEvents } from './edge-reader.ts';
import { type HoldingReceiver, openHoldingReceiver } from './edge-receiver.ts';

const DRAIN_SECONDS = 5;
/** Three times the promise: the drain and the time for closing everything (RELEASE_MARGIN_MS). */
const ENDS_WITHIN_MS = 3 * (DRAIN_SECONDS * 1_000 + 10_000);
const TIMEOUT_MS = 60_000;
const CLEAN = { code: 0, signal: null };
/** Some two seconds: they are in flight when the signal comes, and done before the drain is over. */
const SHORT = '!slow 200 !repeat 10 Hello!';
/** Longer than the drain. */
const LONG = '!slow 500 !repeat 20 Hello!';
/** For a busy machine, where an idle one takes less than a second. A partition whose owner has died takes more than five. */
const HANDED_OVER_WITHIN_MS = 4_500;

type Process = ReturnType<Cluster['running']>[number];
type Role = Parameters<Cluster['running']>[0];

let cluster: Cluster;
let sink: Awaited<ReturnType<typeof openOtlpSink>>;
let database: pg.Pool;
let receiver: HoldingReceiver;

beforeAll(async () => {
  sink = await openOtlpSink();
  receiver = await openHoldingReceiver();
  const roles = { 'router-gateway': 1, 'agent-gateway': 2, 'actor-host': 2, 'router-worker': 1, 'effect-worker': 1 };
  const env = {
    LOG_LEVEL: 'warn',
    SHUTDOWN_DRAIN_TIMEOUT_SECONDS: String(DRAIN_SECONDS),
    OTEL_EXPORTER_OTLP_ENDPOINT: sink.url,
    OUTBOUND_ALLOW_HOSTS: receiver.host,
    COALESCE_MS: '1',
  };
  cluster = await startCluster({ roles, env });
  database = new pg.Pool({ connectionString: cluster.postgres.url, max: 2 });
  database.on('error', () => {});
});
afterAll(async () => {
  await database?.end();
  await cluster?.stop();
  await Promise.all([sink.close(), receiver.close()]);
});

for (const cases of casesOfToday([routerWorker, effectWorker, actorHost, agentGateway, routerGateway])) cases();

function routerWorker(): void {
  describe('a draining router worker', () => {
    it('finishes the call in flight, leaves new calls to other workers, and exports its spans before it ends', async () => {
      const leaving = first('router-worker');
      const stream = await ask(SHORT);
      const sentAtMs = await stop(leaving);
      const meanwhile = ask('Hello!');

      expect(readStream(await stream.text)).toMatchObject({ ends: ['done'], behindEnd: 0 });
      await endsInTime(leaving, sentAtMs);
      expect(callsOf(leaving)).toBe(1);
      const other = await cluster.add('router-worker');
      expect(readStream(await (await meanwhile).text)).toMatchObject({ ends: ['done'] });
      await eventually(() => callsOf(other) === 1, { timeoutMs: TIMEOUT_MS });
    });

    it('naks what is not done when the drain is over: a turn continues at another worker, a stream that was begun ends with an error', async () => {
      const leaving = first('router-worker');
      const sessionId = await say(LONG);
      const stream = await ask(LONG);
      await eventually(async () => (await openEffects()) > 0, { timeoutMs: TIMEOUT_MS });
      const sentAtMs = await stop(leaving);
      await cluster.add('router-worker');

      await endsInTime(leaving, sentAtMs);
      expect(readStream(await stream.text)).toMatchObject({ ends: [502], behindEnd: 0 });
      await isAnsweredOnce(sessionId);
    });
  });
}

function effectWorker(): void {
  describe('a draining effect worker', () => {
    it('waits for the answer to the callback in flight, which is posted once', async () => {
      const leaving = first('effect-worker');
      const run = await heldRun();
      const sentAtMs = await stop(leaving);
      run.answer();

      await endsInTime(leaving, sentAtMs);
      await cluster.add('effect-worker');
      await eventually(async () => (await openEffects()) === 0, { timeoutMs: TIMEOUT_MS });
      expect(run.posts()).toBe(1);
      expect(spansOf(leaving).length).toBeGreaterThan(0);
    });

    it('naks the callback when the drain is over, and another worker posts it', async () => {
      const leaving = first('effect-worker');
      const run = await heldRun();
      const sentAtMs = await stop(leaving);
      await cluster.add('effect-worker');

      await endsInTime(leaving, sentAtMs);
      await eventually(() => run.posts() > 1, { timeoutMs: TIMEOUT_MS });
      run.answer();
      await eventually(async () => (await openEffects()) === 0, { timeoutMs: TIMEOUT_MS });
    });
  });
}

function actorHost(): void {
  describe('a draining actor host', () => {
    it('releases its partitions at once, and the turns in progress end at other hosts', async () => {
      const leaving = first('actor-host');
      // Turns that end where they began: a host that has ended none reports no span. Enough of them that each host has some.
      for (const sessionId of await Promise.all(Array.from({ length: 16 }, () => say('Hello!')))) await isAnsweredOnce(sessionId);
      const sessions = await Promise.all(Array.from({ length: 8 }, () => say(SHORT)));
      await eventually(async () => (await openEffects()) === sessions.length, { timeoutMs: TIMEOUT_MS });
      const before = await owners();
      const sentAtMs = await stop(leaving);
      await endsInTime(leaving, sentAtMs);
      const endedAtMs = performance.now();
      await eventually(async () => (await owners()).length === 1 && before.length === 2, { timeoutMs: TIMEOUT_MS });
      const handedOverMs = performance.now() - endedAtMs;
      console.info(
        `partitions had their new owner ${(performance.now() - sentAtMs).toFixed(0)} ms after the signal, ${handedOverMs.toFixed(0)} ms after the end`,
      );

      expect(handedOverMs).toBeLessThan(HANDED_OVER_WITHIN_MS);
      for (const sessionId of sessions) await isAnsweredOnce(sessionId);
      await eventually(() => spansOf(leaving).length > 0, { timeoutMs: TIMEOUT_MS });
    });
  });
}

function agentGateway(): void {
  describe('a draining agent gateway', () => {
    it('answers long-polls at once with an empty page, ends event streams at an event, and a reader that reconnects elsewhere misses nothing', async () => {
      const leaving = first('agent-gateway');
      const url = leaving.url ?? '';
      const agent = agentClient(url, cluster.keys.agentKey);
      const { id } = await agent.createSession();
      const { offset } = await agent.postMessage(id, 'Hello!', { trigger_processing: false });
      let door = url;
      const reader = followEvents(() => `${door}/sessions/${id}/events`, cluster.keys.agentKey);
      await eventually(() => reader.offsets.length === 1, { timeoutMs: TIMEOUT_MS });
      const plain = agent.poll(id, offset + 1);
      const timed = agent.poll(id, offset + 1, '&wait_for_data=60');
      await eventually(async () => (await metricOf(leaving, 'switchyard_streams_open{kind="agent_long_poll"}')) === 2, { timeoutMs: TIMEOUT_MS });
      const sentAtMs = await stop(leaving);
      door = cluster.running('agent-gateway').find((one) => one !== leaving)?.url ?? '';

      expect(await Promise.all([plain, timed])).toEqual([[], []]);
      await endsInTime(leaving, sentAtMs);
      await agentClient(door, cluster.keys.agentKey).postMessage(id, 'and again', { trigger_processing: false });
      await eventually(() => reader.offsets.length === 2, { timeoutMs: TIMEOUT_MS });
      reader.leave();
      expect(reader.offsets).toEqual([0, 1]);
      expect(spansOf(leaving).length).toBeGreaterThan(0);
    });
  });
}

function routerGateway(): void {
  describe('a draining router gateway', () => {
    it('lets a stream end, ends with an error a stream that does not end in time, and exits with 0', async () => {
      const leaving = first('router-gateway');
      const [short, long] = [await ask(SHORT), await ask(LONG)];
      const sentAtMs = await stop(leaving);

      expect((await fetch(`${leaving.url}/api/v1/models`, { headers: { authorization: `Bearer ${cluster.keys.routerKey}` } })).status).toBe(503);
      expect(readStream(await short.text)).toMatchObject({ ends: ['done'] });
      expect(readStream(await long.text)).toMatchObject({ ends: [503], behindEnd: 0 });
      await endsInTime(leaving, sentAtMs);
      expect(spansOf(leaving).length).toBeGreaterThan(0);
    });
  });
}

function first(role: Role): Process {
  const [one] = cluster.running(role);
  if (one === undefined) throw new Error(`there is no ${role}`);
  return one;
}

/** Sends SIGTERM, and checks that its readiness probe fails at once. @returns when the signal was sent */
async function stop(leaving: Process): Promise<number> {
  const sentAtMs = performance.now();
  leaving.signal('SIGTERM');
  // A process with nothing in flight may have ended before the first probe.
  await eventually(async () => leaving.hasExited() || (await fetch(`${leaving.managementUrl}/ready`)).status === 503, { timeoutMs: TIMEOUT_MS });
  return sentAtMs;
}

async function endsInTime(leaving: Process, sentAtMs: number): Promise<void> {
  expect(await leaving.exited, leaving.output()).toEqual(CLEAN);
  expect(performance.now() - sentAtMs).toBeLessThan(ENDS_WITHIN_MS);
}

function ask(text: string): Promise<OpenStream> {
  return openStream({ routerUrl: cluster.routerUrls[0] ?? '', keys: cluster.keys, output: cluster.output }, text);
}

/** A run whose callback is in flight. */
async function heldRun(): Promise<ReturnType<HoldingReceiver['address']>> {
  const callback = receiver.address();
  const input = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The pump is loud.' };
  const response = await fetch(`${cluster.agentUrls[0]}/routines/triage-warranty-claim/trigger`, {
    method: 'POST',
    headers: { authorization: `Bearer ${cluster.keys.agentKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input, callback_url: callback.url }),
  });
  expect(response.status).toBe(202);
  await eventually(() => callback.posts() === 1, { timeoutMs: TIMEOUT_MS });
  return callback;
}

/** Posts a message to a new session. */
async function say(text: string): Promise<string> {
  const agent = agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
  const { id } = await agent.createSession();
  await agent.postMessage(id, text);
  return id;
}

async function isAnsweredOnce(sessionId: string): Promise<void> {
  const agent = agentClient(cluster.agentUrls[0] ?? '', cluster.keys.agentKey);
  const log = await agent.logUntil(sessionId, (event) => event.kind === 'status' && event.status === 'ready');
  expect(log.filter(({ kind }) => kind === 'assistant_message')).toHaveLength(1);
  expect(log.map(({ offset }) => offset)).toEqual(log.map((_, index) => index));
}

async function openEffects(): Promise<number> {
  const { rows } = await database.query<{ count: number }>(`select count(*)::int as count from effects where state = 'open'`);
  return rows[0]?.count ?? 0;
}

async function owners(): Promise<(string | null)[]> {
  return (await database.query<{ owner: string | null }>('select distinct owner from parts')).rows.map(({ owner }) => owner);
}

async function metricOf({ managementUrl }: Process, series: string): Promise<number> {
  const text = await (await fetch(`${managementUrl}/metrics`)).text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${series} `))
      ?.slice(series.length + 1),
  );
}

/** Spans of streamed model calls that a process has exported: those that evaluate the agent's documents at its start are not streamed. */
function callsOf(worker: Process): number {
  return spansOf(worker).filter(({ name, attributes }) => name.startsWith('chat') && 'switchyard.deltas' in attributes).length;
}

/** What a process has exported. */
function spansOf({ role, pid }: Process) {
  return sink.spans.filter(({ resource }) => resource['service.name'] === role && String(resource['process.pid'] ?? pid) === String(pid));
}
