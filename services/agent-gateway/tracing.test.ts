import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { readSettings } from '#shared/config/settings.ts';
import { tracingConfigOf, tracingSettings } from '#shared/config/tracing-settings.ts';
import { localTrace, traceList } from '#shared/contracts/local-trace.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { LocalTraces } from '#shared/telemetry/local-traces.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { tracingTo } from '#shared/telemetry/open-tracing.ts';
import { recordingTracing } from '#shared/telemetry/test-support/recording-tracing.ts';
import { spanReferenceIn } from '#shared/telemetry/trace-context.ts';
import { noTracing } from '#shared/telemetry/tracing.ts';
import { buildApp } from './app.ts';
import { bundleWith } from './test-support/bundle.ts';
import { BEARER, openTestDeployment, type TestDeployment } from './test-support/test-deployment.ts';
import { until } from './test-support/until.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;

let deployment: TestDeployment;
const apps: FastifyInstance[] = [];
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());
afterEach(async () => {
  await Promise.all(apps.splice(0).map((app) => app.close()));
});

function bundle(): Bundle {
  const { hash, body } = bundleWith({ id: 'triage' });
  const traces = { deployment_environment: 'production', trace_id_field: 'order', backend: null };
  return { hash, body: { ...body, manifest: { ...body.manifest, agent_config: { ...body.manifest.agent_config, traces } } } };
}

function open(tracing = recordingTracing()) {
  const app = buildApp({ ...deployment.deps({ bundle: bundle() }), tracing });
  apps.push(app);
  return { app, tracing };
}

const json = { ...BEARER, 'content-type': 'application/json' };

describe('a request', () => {
  it('is a span under its route, whatever its path, and what it publishes is below it', async () => {
    const { app, tracing } = open();
    const created = await app.inject({ method: 'POST', url: '/sessions', headers: { ...BEARER, traceparent: PARENT } });
    const { id } = created.json();
    await app.inject({ method: 'GET', url: `/sessions/${id}?token=hush`, headers: BEARER });
    await app.inject({ method: 'GET', url: '/health', headers: BEARER });
    await app.inject({ method: 'GET', url: '/nowhere/hush', headers: { authorization: 'Bearer hush' } });
    await until(() => tracing.spans.length >= 4, 'four spans');

    const [publish, create, read, nowhere] = tracing.spans;
    expect(tracing.spans.map(({ name }) => name)).toEqual(['publish cmd', 'POST /sessions', 'GET /sessions/:session_id', 'GET']);
    expect(create).toMatchObject({
      kind: 'server',
      parent: PARENT,
      errorType: null,
      attributes: { 'http.response.status_code': 201, 'http.route': '/sessions' },
    });
    expect(publish).toMatchObject({ kind: 'producer', scope: 'switchyard.messaging', parent: create?.traceparent });
    expect(deployment.owner.commands.find((command) => command.sessionId === id)?.traceparent).toBe(publish?.traceparent);
    expect([read?.parent, nowhere?.parent]).toEqual([null, null]);
    expect(JSON.stringify(tracing.spans)).not.toContain('hush');
  });
});

describe('a run whose input names its trace', () => {
  const trigger = (app: FastifyInstance, order: unknown) =>
    app.inject({
      method: 'POST',
      url: '/routines/triage/trigger',
      headers: { ...json, traceparent: PARENT },
      payload: JSON.stringify({ callback_url: 'https://hooks.example.com/done', input: order === undefined ? {} : { order } }),
    });
  const rowOf = async (runId: string) => {
    const { rows } = await deployment.database.query<{ trace_id: string; traceparent: string }>('select trace_id, traceparent from runs where id = $1', [
      runId,
    ]);
    return rows[0];
  };

  it.each([
    ['32 hex', 'c0ffee00c0ffee00c0ffee00c0ffee77'],
    ['a text', 'order 4711'],
    ['a number', 4711],
  ])('has its own trace, whose root has the name, also when another run has the same: %s', async (_, order) => {
    const { app, tracing } = open();
    const replies = [await trigger(app, order), await trigger(app, order)];
    expect(replies.map(({ statusCode }) => statusCode)).toEqual([202, 202]);
    const rows = await Promise.all(replies.map((reply) => rowOf(reply.json().run_id)));
    await until(() => tracing.spans.length >= 4, 'four spans');
    const publishes = tracing.spans.filter(({ kind }) => kind === 'producer');
    const requests = tracing.spans.filter(({ kind }) => kind === 'server');

    expect(rows.map((row) => row?.traceparent)).toEqual(publishes.map(({ traceparent }) => traceparent));
    expect(rows.map((row) => row?.trace_id)).toEqual(publishes.map(({ traceparent }) => spanReferenceIn(traceparent)?.traceId));
    expect(new Set([...rows.map((row) => row?.trace_id), TRACE, order]).size).toBe(4);
    expect(publishes.map(({ name }) => name)).toEqual([`publish cmd ${order}`, `publish cmd ${order}`]);
    expect(publishes.map(({ attributes }) => attributes?.['switchyard.trace_name'])).toEqual([String(order), String(order)]);
    expect(publishes.map(({ parent, links }) => [parent, links])).toEqual(requests.map(({ traceparent }) => [null, [traceparent]]));
  });

  it.each([
    ['nothing', undefined],
    ['an object', {}],
  ])('is in the trace of its request when it names none: %s', async (_, order) => {
    const { app, tracing } = open();
    const row = await rowOf((await trigger(app, order)).json().run_id);
    await until(() => tracing.spans.length >= 2, 'two spans');
    const publish = tracing.spans.find(({ name }) => name === 'publish cmd');
    const request = tracing.spans.find(({ kind }) => kind === 'server');

    expect(row).toEqual({ trace_id: TRACE, traceparent: publish?.traceparent });
    expect([publish?.parent, publish?.links]).toEqual([request?.traceparent, undefined]);
    expect(publish?.attributes).not.toHaveProperty('switchyard.trace_name');
  });

  it('has its own trace without a collector too', async () => {
    const app = buildApp({ ...deployment.deps({ bundle: bundle() }), tracing: noTracing });
    apps.push(app);
    const rows = [await rowOf((await trigger(app, 'order 4711')).json().run_id), await rowOf((await trigger(app, 'order 4711')).json().run_id)];

    expect(rows.map((row) => row?.trace_id)).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/), expect.stringMatching(/^[0-9a-f]{32}$/)]);
    expect(new Set([...rows.map((row) => row?.trace_id), TRACE]).size).toBe(3);
  });
});

describe('GET /traces', () => {
  const config = tracingConfigOf(readSettings(tracingSettings, {}));

  it('shows the last traces of this process behind the key, and never its own requests', async () => {
    const app = buildApp({
      ...deployment.deps(),
      tracing: await tracingTo(null, { config, service: 'test', log: silentLog }, new LocalTraces({ limits: config.otel.limits })),
    });
    apps.push(app);
    await app.inject({ method: 'POST', url: '/sessions', headers: { ...BEARER, traceparent: PARENT } });
    expect((await app.inject('/traces')).statusCode).toBe(401);
    const listed = () => app.inject({ url: '/traces?limit=5', headers: BEARER });
    await until(async () => (await listed()).json().traces[0]?.name === 'POST /sessions', 'the trace of the request');

    const { traces } = traceList.parse((await listed()).json());
    expect(traces.map(({ trace_id: id }) => id)).toContain(TRACE);
    const one = await app.inject({ url: `/traces/${TRACE}`, headers: BEARER });
    expect(localTrace.parse(one.json()).spans.map(({ name }) => name)).toEqual(expect.arrayContaining(['POST /sessions', 'publish cmd']));
    expect(traces.filter(({ name }) => name.includes('/traces'))).toEqual([]);
  });

  it('is 404 for a trace that is not kept, 400 for a wrong limit, and 404 where nothing is kept', async () => {
    const local = new LocalTraces({ limits: config.otel.limits });
    const app = buildApp({ ...deployment.deps(), tracing: await tracingTo(null, { config, service: 'test', log: silentLog }, local) });
    const { app: without } = open();
    apps.push(app);
    const statusOf = async (url: string, of = app) => (await of.inject({ url, headers: BEARER })).statusCode;
    expect([await statusOf(`/traces/${TRACE}`), await statusOf('/traces?limit=0'), await statusOf('/traces', without)]).toEqual([404, 400, 404]);
  });
});
