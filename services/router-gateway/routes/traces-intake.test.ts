import { randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { readSettings } from '#shared/config/settings.ts';
import { tracingConfigOf, tracingSettings } from '#shared/config/tracing-settings.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { selfMadeCertificate } from '#shared/http/test-support/self-made-certificate.ts';
import type { Database } from '#shared/storage/database.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { metricTable, noMetrics } from '#shared/telemetry/metrics.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import { startRouterGateway } from '../service.ts';
import { environment, HOUSE_SECRET, KEY, recordingLog, testConfig } from '../test-support/harness.ts';
import { openTraceForwarder } from '../trace-forwarder.ts';

const outbound = openOutbound({});

const MIB = 1_024 * 1_024;
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

let database: Database;
let bus: Bus;
let collector: Awaited<ReturnType<typeof openCollector>>;
const opened: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  database = await openTestDatabase();
  bus = await openMemoryBus({ database, clock: systemClock });
});
beforeEach(async () => {
  collector = await openCollector();
});
afterEach(async () => {
  collector.answer(200);
  await Promise.all(opened.splice(0).map((one) => one.stop()));
  await collector.close();
});
afterAll(async () => {
  await bus.close();
  await database.close();
});

/** A collector that records requests and can hold its responses back. */
async function openCollector() {
  const received: { url: string; headers: IncomingHttpHeaders; body: Buffer }[] = [];
  const held: (() => void)[] = [];
  let answer: number | 'hold' = 200;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ url: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks) });
      if (answer === 'hold') held.push(() => response.end());
      else response.writeHead(answer).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    answer: (next: number | 'hold') => {
      answer = next;
      if (next !== 'hold') for (const release of held.splice(0)) release();
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const platform = { publicKey: 'pk-test', secretKey: 'sk-test' };

async function gateway(
  endpoint: string | null,
  log = recordingLog(),
  metrics = noMetrics,
  platformKeys: typeof platform | null = platform,
  more: Record<string, string> = {},
): Promise<string> {
  const tracing = { ...tracingConfigOf(readSettings(tracingSettings, more)), endpoint, headers: { authorization: 'Basic c2VjcmV0' } };
  const config = { host: '127.0.0.1', port: 0, drainTimeoutMs: 0, tracing, platformKeys };
  const stores = { bus, database: null, cache: null };
  const deps = { config, routerConfig: testConfig, environment, houseSecret: HOUSE_SECRET, ...stores, log, metrics, clock: systemClock };
  const started = await startRouterGateway(deps);
  opened.push(started);
  return `${started.url}/api/v1/otel/v1/traces`;
}

function send(url: string, body: Buffer | string, headers: Record<string, string> = {}): Promise<Response> {
  const all = { authorization: `Bearer ${KEY}`, 'content-type': 'application/x-protobuf', ...headers };
  return fetch(url, { method: 'POST', body, headers: all });
}

describe('a request to the intake of traces', () => {
  it('is refused without a key of the router, too large, in another form, or in a cycle', async () => {
    const url = await gateway(collector.url);

    expect((await send(url, 'x', { authorization: 'Bearer wrong' })).status).toBe(401);
    expect((await send(url, Buffer.alloc(4 * MIB + 1))).status).toBe(413);
    expect((await send(url, 'x', { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await send(url, 'x', { 'content-encoding': 'br' })).status).toBe(415);
    expect((await send(url, 'x', { 'x-switchyard-forwarded': '3' })).status).toBe(400);
    expect((await send(url, 'x', { 'x-switchyard-forwarded': 'often' })).status).toBe(400);
    expect(collector.received).toEqual([]);
  });

  it('is accepted with the platform’s keys, as agents have them, and with no others', async () => {
    const url = await gateway(collector.url);
    const basic = (pair: string) => ({ authorization: `Basic ${Buffer.from(pair).toString('base64')}` });

    expect((await send(url, 'x', basic('pk-test:sk-test'))).status).toBe(200);
    for (const pair of ['pk-test:sk-other', 'pk-test:', ':', 'pk-test:sk-test:']) expect((await send(url, 'x', basic(pair))).status).toBe(401);
    // The platform's keys give access to nothing else.
    expect((await fetch(url.replace('/otel/v1/traces', '/models'), { headers: basic('pk-test:sk-test') })).status).toBe(401);
  });

  it('is accepted with no pair where no platform’s keys are set', async () => {
    const url = await gateway(collector.url, recordingLog(), noMetrics, null);

    expect((await send(url, 'x', { authorization: `Basic ${Buffer.from('undefined:undefined').toString('base64')}` })).status).toBe(401);
  });

  it('DESIGN 12: traces of clients are forwarded to the collector byte for byte, with its credential in place of the client’s', async () => {
    const url = await gateway(collector.url);
    const bytes = randomBytes(300_000);
    const zipped = gzipSync('some spans');
    const first = await send(url, bytes);
    expect([first.status, first.headers.get('content-type'), await first.text()]).toEqual([200, 'application/x-protobuf', '']);
    await eventually(() => collector.received.length).toBe(1);
    const second = await send(url, zipped, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    expect([second.status, await second.json()]).toEqual([200, {}]);
    await eventually(() => collector.received.length).toBe(2);

    expect(collector.received.map(({ body }) => body)).toEqual([bytes, zipped]);
    expect(collector.received.map(({ url: path, headers }) => [path, headers.authorization, headers['content-type'], headers['content-encoding']])).toEqual([
      ['/v1/traces', 'Basic c2VjcmV0', 'application/x-protobuf', undefined],
      ['/v1/traces', 'Basic c2VjcmV0', 'application/json', 'gzip'],
    ]);
  });

  it('reaches the collector through the gateway of another deployment, whose collector it is', async () => {
    const ours = openTraceForwarder({ outbound, url: await gateway(collector.url), headers: { authorization: `Bearer ${KEY}` }, log: silentLog });
    opened.push(ours);
    ours.accept({ body: Buffer.from('far'), contentType: 'application/x-protobuf', contentEncoding: null });

    await eventually(() => collector.received.map(({ body }) => body.toString())).toEqual(['far']);
  });

  it('is accepted without a collector too, with a warning that exporters log once', async () => {
    const url = await gateway(null);
    const asJson = await send(url, '{}', { 'content-type': 'application/json' });
    const asProtobuf = await send(url, 'x');

    expect([asJson.status, await asJson.json()]).toEqual([200, { partialSuccess: { errorMessage: expect.stringContaining('accepted and dropped') } }]);
    const bytes = Buffer.from(await asProtobuf.arrayBuffer());
    expect([bytes[0], bytes[1], bytes[2], bytes[3]]).toEqual([0x0a, bytes.length - 2, 0x12, bytes.length - 4]);
    expect(bytes.toString('utf8')).toContain('accepted and dropped');
  });

  it('is accepted and dropped where the collector is reached over gRPC, and logged at the start', async () => {
    const log = recordingLog();
    const url = await gateway(collector.url, log, noMetrics, platform, { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' });

    expect(log.lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('OTEL_EXPORTER_OTLP_PROTOCOL') }]);
    expect(await (await send(url, '{}', { 'content-type': 'application/json' })).json()).toMatchObject({ partialSuccess: {} });
    expect(collector.received).toEqual([]);
  });

  it('is forwarded over TLS to a collector with a certificate that the environment names', async () => {
    const { certificate, key } = selfMadeCertificate(['localhost']);
    const received: (string | undefined)[] = [];
    const server = createTlsServer({ cert: certificate, key }, (request, response) => {
      received.push(request.url);
      request.resume().on('end', () => response.end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://localhost:${(server.address() as AddressInfo).port}/v1/traces`;
    const forwarder = openTraceForwarder({ outbound, url, headers: {}, tls: { ca: Buffer.from(certificate) }, log: silentLog });
    opened.push(forwarder);
    forwarder.accept({ body: Buffer.from('x'), contentType: 'application/x-protobuf', contentEncoding: null });
    await eventually(() => received).toEqual(['/v1/traces']);
    await forwarder.stop();
    await new Promise((resolve) => server.close(resolve));
  });

  it('is retried while the collector asks for it, and dropped, counted and logged, when it refuses', async () => {
    const log = recordingLog();
    const metrics = openMetrics();
    const url = await gateway(collector.url, log, metrics);
    collector.answer(503);
    await send(url, 'later');
    await eventually(() => collector.received.length).toBe(1);
    collector.answer(200);
    await eventually(() => collector.received.length).toBe(2);
    collector.answer(400);
    await send(url, 'no');
    await eventually(() => log.lines.filter(({ message }) => message.includes('could not be forwarded')).length).toBe(1);

    expect(collector.received.map(({ body }) => body.toString())).toEqual(['later', 'later', 'no']);
    expect(seriesOf(await metrics.text(), metricTable.telemetryDropped.name)).toContain('{kind="client_batches"} 1');
  });

  it('DESIGN 12: traces do not accumulate for a slow collector: what is beyond the queue is refused', async () => {
    const forwarder = openTraceForwarder({ outbound, url: `${collector.url}/v1/traces`, headers: {}, log: silentLog, maxWaitingBytes: 2 * MIB });
    opened.push(forwarder);
    const batch = { body: Buffer.alloc(MIB), contentType: 'application/x-protobuf', contentEncoding: null };
    collector.answer('hold');

    expect([forwarder.accept(batch), forwarder.accept(batch), forwarder.accept(batch)]).toEqual([true, true, false]);
    await eventually(() => collector.received.length).toBe(2);
    collector.answer(200);
    await eventually(() => forwarder.accept(batch)).toBe(true);
  });

  it('is dropped at a stop when the collector does not answer', async () => {
    const warn = vi.fn();
    const forwarder = openTraceForwarder({ outbound, url: `${collector.url}/v1/traces`, headers: {}, log: { ...silentLog, warn } });
    collector.answer('hold');
    forwarder.accept({ body: Buffer.from('x'), contentType: 'application/x-protobuf', contentEncoding: null });
    await eventually(() => collector.received.length).toBe(1);
    // The collector's own limits are longer than this test's wait, and use no timers.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const stopped = forwarder.stop();
    await vi.advanceTimersByTimeAsync(1_999);
    expect(warn).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    vi.useRealTimers();
    await stopped;

    expect(warn).toHaveBeenCalledExactlyOnceWith({ err: expect.objectContaining({ name: 'AbortError' }), lost: 1 }, expect.any(String));
    expect(collector.received).toHaveLength(1);
    expect(forwarder.accept({ body: Buffer.from('x'), contentType: 'application/x-protobuf', contentEncoding: null })).toBe(false);
  });
});
