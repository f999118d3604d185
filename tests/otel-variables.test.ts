import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { readSettings } from '../shared/config/settings.ts';
import { tracingConfigOf, tracingSettings } from '../shared/config/tracing-settings.ts';
import { openProxyDouble } from '../shared/http/test-support/open-proxy-double.ts';
import { selfMadeCertificate } from '../shared/http/test-support/self-made-certificate.ts';
import { type Log, silentLog } from '../shared/telemetry/log.ts';
import { openTracing, tracingTo } from '../shared/telemetry/open-tracing.ts';
import { spanReferenceIn } from '../shared/telemetry/trace-context.ts';
import { noTracing, type Tracing } from '../shared/telemetry/tracing.ts';
import { openOtlpGrpcSink } from './helpers/otlp-grpc-sink.ts';
import { openOtlpSink } from './helpers/otlp-sink.ts';

type Environment = Record<string, string>;

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SAMPLED = `00-${TRACE}-b7ad6b7169203331-01`;
const UNSAMPLED = `00-${TRACE}-b7ad6b7169203331-00`;
const TIMEOUT = { timeout: 60_000, interval: 10 };

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  for (const close of closers.splice(0).reverse()) await close();
});

async function sinkOf(tls?: Parameters<typeof openOtlpSink>[0]) {
  const sink = await openOtlpSink(tls);
  closers.push(sink.close);
  return sink;
}

function recordingLog(): { log: Log; lines: { level: string; message: string; fields: Record<string, unknown> }[] } {
  const lines: { level: string; message: string; fields: Record<string, unknown> }[] = [];
  const at = (level: string) => (fields: Record<string, unknown>, message: string) => void lines.push({ level, message, fields });
  return { lines, log: { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } };
}

/** Tracing as opened by a process with these variables and no other of OpenTelemetry. */
async function open(environment: Environment, log: Log = silentLog): Promise<Tracing> {
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  const tracing = await openTracing({ config: tracingConfigOf(readSettings(tracingSettings, environment)), service: 'test', environment, log });
  closers.push(() => tracing.stop());
  return tracing;
}

function makeSpan(tracing: Tracing, parent: string | null = null): string {
  const links = [SAMPLED, UNSAMPLED];
  const span = tracing.begin('work', { kind: 'internal', parent, links, attributes: { first: 'abcdefghij', second: 2 } });
  span.end();
  return span.traceparent;
}

/** What a collector receives of one span. @param environment beside the endpoint */
async function sent(environment: Environment, parent: string | null = null) {
  const sink = await sinkOf();
  const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url, ...environment });
  const traceparent = makeSpan(tracing, parent);
  await tracing.stop();
  return { ...sink, span: sink.spans[0], post: sink.posts[0], traceparent };
}

/** Tracing to an exporter that records its batches and responds with `answers`. */
async function openBatches(environment: Environment, answers = true) {
  const batches: number[] = [];
  const exporter: SpanExporter = {
    export(spans, done) {
      batches.push(spans.length);
      if (answers) done({ code: 0 });
    },
    shutdown: async () => {},
  };
  const tracing = await tracingTo(exporter, { config: tracingConfigOf(readSettings(tracingSettings, environment)), service: 'test', log: silentLog });
  closers.push(() => tracing.stop());
  return { tracing, batches };
}

/** Spans that a sampler records: of a caller that records, of one that does not, and of none. */
async function recorded(environment: Environment) {
  const kinds = await Promise.all([SAMPLED, UNSAMPLED, null].map((parent) => sent(environment, parent)));
  return kinds.map(({ spans, traceparent }) => [spans.length, spanReferenceIn(traceparent)?.isSampled]);
}

const [yes, no] = [
  [1, true],
  [0, false],
];

async function tlsFiles() {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-otel-'));
  closers.push(() => rm(folder, { recursive: true }));
  const [server, client] = [selfMadeCertificate(['localhost']), selfMadeCertificate(['client'])];
  const files = { certificate: join(folder, 'ca.pem'), clientCertificate: join(folder, 'client.pem'), clientKey: join(folder, 'client.key') };
  await Promise.all([
    writeFile(files.certificate, server.certificate),
    writeFile(files.clientCertificate, client.certificate),
    writeFile(files.clientKey, client.key),
  ]);
  const sink = await sinkOf({ cert: server.certificate, key: server.key, ca: client.certificate });
  return { files, sink };
}

/** Both variables of a pair work, and the one of traces wins. */
function withBoth(rest: string, one: string, other: string): readonly [Environment, Environment] {
  return [{ [`OTEL_EXPORTER_OTLP_${rest}`]: one }, { [`OTEL_EXPORTER_OTLP_${rest}`]: other, [`OTEL_EXPORTER_OTLP_TRACES_${rest}`]: one }];
}

async function holdsTls() {
  const { files, sink } = await tlsFiles();
  const environments = [
    ['', files],
    ['TRACES_', files],
  ] as const;
  for (const [signal, { certificate, clientCertificate, clientKey }] of environments) {
    const tls = {
      [`OTEL_EXPORTER_OTLP_${signal}CERTIFICATE`]: certificate,
      [`OTEL_EXPORTER_OTLP_${signal}CLIENT_CERTIFICATE`]: clientCertificate,
      [`OTEL_EXPORTER_OTLP_${signal}CLIENT_KEY`]: clientKey,
    };
    const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url, ...tls });
    makeSpan(tracing);
    await tracing.stop();
  }
  expect(sink.spans).toHaveLength(2);
  const without = open({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url, OTEL_EXPORTER_OTLP_CLIENT_KEY: files.clientKey });
  await expect(without).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining('OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE') });
  const missing = open({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url, OTEL_EXPORTER_OTLP_CERTIFICATE: '/nowhere/hush.pem' });
  await expect(missing).rejects.toMatchObject({ code: 'config.invalid', message: expect.stringContaining('OTEL_EXPORTER_OTLP_CERTIFICATE') });
}

async function holdsProtocol() {
  for (const environment of withBoth('PROTOCOL', 'http/json', 'grpc')) {
    const { post } = await sent(environment);
    expect(post?.headers['content-type']).toBe('application/json');
    expect(JSON.parse(String(post?.body)).resourceSpans[0].scopeSpans[0].spans[0].name).toBe('work');
  }
  const grpc = await openOtlpGrpcSink();
  closers.push(grpc.close);
  for (const environment of withBoth('PROTOCOL', 'grpc', 'http/json')) {
    const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: grpc.url, OTEL_EXPORTER_OTLP_HEADERS: 'x-team=a%20b', ...environment });
    makeSpan(tracing);
    await tracing.stop();
  }
  expect(grpc.spans.map(({ name }) => name)).toEqual(['work', 'work']);
  expect(grpc.posts[0]).toMatchObject({ path: expect.stringContaining('TraceService/Export'), headers: { 'x-team': 'a b' } });
}

async function holdsHeaders() {
  const headers = { OTEL_EXPORTER_OTLP_HEADERS: 'x-team=a,x-one=1', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-team=b%2C' };
  expect((await sent(headers)).post?.headers).toMatchObject({ 'x-team': 'b,', 'x-one': '1' });
}

async function holdsTimeout() {
  for (const environment of withBoth('TIMEOUT', '50', '60000')) {
    const sink = await sinkOf();
    sink.answer(null);
    const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url, OTEL_BSP_SCHEDULE_DELAY: '1', ...environment });
    makeSpan(tracing);
    // Well before the default of ten seconds.
    await expect.poll(() => tracing.dropped, { timeout: 8_000, interval: 10 }).toBe(1);
  }
}

async function holdsCompression() {
  for (const environment of withBoth('COMPRESSION', 'gzip', 'none')) {
    const { post, spans } = await sent(environment);
    expect([post?.headers['content-encoding'], spans.length]).toEqual(['gzip', 1]);
  }
  expect((await sent({ OTEL_EXPORTER_OTLP_COMPRESSION: 'none' })).post?.headers).not.toHaveProperty('content-encoding');
}

async function holdsSampler() {
  expect(await recorded({ OTEL_TRACES_SAMPLER: 'always_on' })).toEqual([yes, yes, yes]);
  expect(await recorded({ OTEL_TRACES_SAMPLER: 'always_off' })).toEqual([no, no, no]);
  expect(await recorded({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' })).toEqual([no, no, no]);
  expect(await recorded({ OTEL_TRACES_SAMPLER: 'parentbased_always_on' })).toEqual([yes, no, yes]);
  expect(await recorded({ OTEL_TRACES_SAMPLER: 'parentbased_always_off' })).toEqual([yes, no, no]);
  expect(await recorded({ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' })).toEqual([yes, no, no]);
  expect(await recorded({ OTEL_TRACES_SAMPLER_ARG: '0' })).toEqual([yes, no, no]);
  expect(await recorded({})).toEqual([yes, no, yes]);
}

async function holdsCountLimit() {
  for (const environment of [{ OTEL_ATTRIBUTE_COUNT_LIMIT: '1' }, { OTEL_ATTRIBUTE_COUNT_LIMIT: '9', OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '1' }]) {
    const { span } = await sent(environment);
    expect(span).toMatchObject({ attributes: { first: 'abcdefghij' }, droppedAttributes: 1 });
    expect(span?.attributes).not.toHaveProperty('second');
  }
}

async function holdsLengthLimit() {
  for (const environment of [
    { OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '5' },
    { OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '9', OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '5' },
  ]) {
    expect((await sent(environment)).span?.attributes['first']).toBe('abcd…');
  }
  expect((await sent({ OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '0' })).span?.attributes['first']).toBe('');
}

/** Names and attributes of the events that a collector receives. */
async function eventsOf(environment: Environment) {
  const sink = await sinkOf();
  const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url, ...environment });
  const events = ['one', 'two'].map((name) => ({ name, atMs: 1_500, attributes: { first: 'abcdefghij', second: 2 } }));
  tracing.record({ name: 'work', kind: 'internal', parent: null, startMs: 1_000, endMs: 2_000, events });
  await tracing.stop();
  return sink.spans[0]?.events ?? [];
}

async function holdsLimitOfEvents() {
  const whole = await eventsOf({});
  expect(whole).toEqual(['one', 'two'].map((name) => ({ name, atNanos: 1_500_000_000n, attributes: { first: 'abcdefghij', second: 2 } })));
  expect(await eventsOf({ OTEL_SPAN_EVENT_COUNT_LIMIT: '1' })).toEqual(whole.slice(0, 1));
}

async function holdsLimitOfEventAttributes() {
  for (const environment of [{ OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT: '1' }, { OTEL_ATTRIBUTE_COUNT_LIMIT: '1' }] as const) {
    expect((await eventsOf(environment)).map(({ attributes }) => attributes)).toEqual([{ first: 'abcdefghij' }, { first: 'abcdefghij' }]);
  }
  expect((await eventsOf({ OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '5' }))[0]?.attributes).toMatchObject({ first: 'abcd…' });
}

async function holdsLimitsOfNothing() {
  const { span } = await sent({ OTEL_LINK_ATTRIBUTE_COUNT_LIMIT: '0' });
  expect(span?.links).toHaveLength(2);
}

/** The check of each variable of the table. */
const cases: Record<string, () => Promise<void>> = {
  OTEL_SDK_DISABLED: async () => {
    expect((await sent({ OTEL_SDK_DISABLED: 'TRUE' })).posts).toEqual([]);
    expect((await sent({ OTEL_SDK_DISABLED: 'false' })).spans).toHaveLength(1);
  },
  OTEL_LOG_LEVEL: async () => {
    const sink = await sinkOf();
    const messages = async (level: string) => {
      const { log, lines } = recordingLog();
      const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url, OTEL_LOG_LEVEL: level }, log);
      makeSpan(tracing);
      await tracing.stop();
      return lines.filter(({ message }) => message.startsWith('OpenTelemetry: '));
    };
    expect((await messages('debug')).length).toBeGreaterThan(0);
    expect(await messages('warn')).toEqual([]);
  },
  OTEL_PROPAGATORS: async () => {
    const { log, lines } = recordingLog();
    await open({ OTEL_PROPAGATORS: 'tracecontext' }, log);
    expect(lines).toEqual([]);
    await open({ OTEL_PROPAGATORS: 'tracecontext, baggage' }, log);
    expect(lines).toEqual([]);
    const passesBaggage = (names: string) => tracingConfigOf(readSettings(tracingSettings, { OTEL_PROPAGATORS: names })).otel.passesBaggage;
    expect([passesBaggage('tracecontext,Baggage'), passesBaggage('tracecontext')]).toEqual([true, false]);
    await open({ OTEL_PROPAGATORS: 'tracecontext,b3' }, log);
    expect(lines).toEqual([
      { level: 'warn', message: expect.stringContaining('only tracecontext and baggage'), fields: expect.objectContaining({ name: 'OTEL_PROPAGATORS' }) },
    ]);
  },
  OTEL_SERVICE_NAME: async () => expect((await sent({ OTEL_SERVICE_NAME: 'shop' })).span?.resource['service.name']).toBe('shop'),
  OTEL_RESOURCE_ATTRIBUTES: async () => {
    const attributes = { OTEL_RESOURCE_ATTRIBUTES: 'team=a%2Cb,service.name=till,service.namespace=market' };
    expect((await sent(attributes)).span?.resource).toMatchObject({ team: 'a,b', 'service.name': 'till', 'service.namespace': 'market' });
    expect((await sent({ ...attributes, OTEL_SERVICE_NAME: 'shop' })).span?.resource['service.name']).toBe('shop');
  },
  OTEL_TRACES_EXPORTER: async () => {
    const { log, lines } = recordingLog();
    const spansInLog = () => lines.filter(({ message }) => message === 'span work').length;
    const sink = await sinkOf();
    for (const [exporters, inLog, inSink] of [
      ['console', 1, 0],
      ['otlp,console', 2, 1],
      ['otlp', 2, 2],
      ['none', 2, 2],
    ] as const) {
      const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.url, OTEL_TRACES_EXPORTER: exporters }, log);
      makeSpan(tracing);
      await tracing.stop();
      expect([exporters, spansInLog(), sink.spans.length]).toEqual([exporters, inLog, inSink]);
    }
    expect(await open({ OTEL_TRACES_EXPORTER: 'none' })).toBe(noTracing);
    expect(await open({ OTEL_TRACES_EXPORTER: 'otlp' })).toBe(noTracing);
  },
  OTEL_TRACES_SAMPLER: holdsSampler,
  OTEL_TRACES_SAMPLER_ARG: holdsSampler,
  OTEL_EXPORTER_OTLP_ENDPOINT: async () => expect((await sent({})).post?.url).toBe('/v1/traces'),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: async () => {
    const sink = await sinkOf();
    expect((await sent({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${sink.url}/in` })).posts).toEqual([]);
    expect(sink.posts.map(({ url }) => url)).toEqual(['/in']);
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: holdsProtocol,
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: holdsProtocol,
  OTEL_EXPORTER_OTLP_HEADERS: holdsHeaders,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: holdsHeaders,
  OTEL_EXPORTER_OTLP_TIMEOUT: holdsTimeout,
  OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: holdsTimeout,
  OTEL_EXPORTER_OTLP_COMPRESSION: holdsCompression,
  OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: holdsCompression,
  OTEL_EXPORTER_OTLP_CERTIFICATE: holdsTls,
  OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE: holdsTls,
  OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: holdsTls,
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE: holdsTls,
  OTEL_EXPORTER_OTLP_CLIENT_KEY: holdsTls,
  OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: holdsTls,
  OTEL_BSP_SCHEDULE_DELAY: async () => {
    vi.useFakeTimers();
    const { tracing, batches } = await openBatches({ OTEL_BSP_SCHEDULE_DELAY: '7000' });
    makeSpan(tracing);
    await vi.advanceTimersByTimeAsync(6_999);
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([1]);
    vi.useRealTimers();
  },
  OTEL_BSP_EXPORT_TIMEOUT: async () => {
    vi.useFakeTimers();
    const { tracing, batches } = await openBatches(
      { OTEL_BSP_EXPORT_TIMEOUT: '3000', OTEL_BSP_SCHEDULE_DELAY: '1', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1' },
      false,
    );
    makeSpan(tracing);
    makeSpan(tracing);
    await vi.advanceTimersByTimeAsync(2_900);
    expect(batches).toEqual([1]);
    await vi.advanceTimersByTimeAsync(200);
    expect(batches).toEqual([1, 1]);
    vi.useRealTimers();
  },
  OTEL_BSP_MAX_QUEUE_SIZE: async () => {
    const { tracing } = await openBatches({ OTEL_BSP_MAX_QUEUE_SIZE: '10' }, false);
    for (let index = 0; index < 15; index += 1) makeSpan(tracing);
    expect(tracing.dropped).toBe(5);
  },
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: async () => {
    const { tracing, batches } = await openBatches({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '3' });
    for (let index = 0; index < 7; index += 1) makeSpan(tracing);
    await expect.poll(() => batches.reduce((sum, size) => sum + size, 0), TIMEOUT).toBe(7);
    expect(batches).toEqual([3, 3, 1]);
  },
  OTEL_ATTRIBUTE_COUNT_LIMIT: holdsCountLimit,
  OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: holdsCountLimit,
  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: holdsLengthLimit,
  OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: holdsLengthLimit,
  OTEL_SPAN_LINK_COUNT_LIMIT: async () => expect((await sent({ OTEL_SPAN_LINK_COUNT_LIMIT: '1' })).span?.links).toHaveLength(1),
  OTEL_SPAN_EVENT_COUNT_LIMIT: holdsLimitOfEvents,
  OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT: holdsLimitOfEventAttributes,
  OTEL_LINK_ATTRIBUTE_COUNT_LIMIT: holdsLimitsOfNothing,
};

describe('the standard variables of OpenTelemetry', () => {
  const operations = readFileSync(new URL('../docs/operations.md', import.meta.url), 'utf8');
  const [section = ''] = operations.split('### The variables of OpenTelemetry\n').slice(1);
  /** Of the rows of the table: the names in the first column. */
  const documented = [...section.matchAll(/^\| (`OTEL_[^|]*) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`(OTEL_[A-Z_]+)`/g)].map(([, name = '']) => name),
  );

  it('are documented in one table, each that is read and no other', () => {
    const read = Object.keys(tracingSettings).filter((name) => name.startsWith('OTEL_'));

    expect([...documented].sort()).toEqual([...read].sort());
    expect(Object.keys(cases).sort()).toEqual([...read].sort());
  });

  // One function may hold several variables: it runs once.
  const functions = new Map(Object.entries(cases).map(([, holds]) => [holds, Object.keys(cases).filter((name) => cases[name] === holds)]));
  it.each([...functions].map(([holds, names]) => ({ names: names.join(', '), holds })))('do what the table says: $names', ({ holds }) => holds());

  it('leave the way to the collector to the proxy variables', async () => {
    const sink = await sinkOf();
    const proxy = await openProxyDouble(Number(new URL(sink.url).port));
    closers.push(() => proxy.close());
    const tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.invalid', HTTP_PROXY: proxy.url });
    makeSpan(tracing);
    await tracing.stop();

    expect([sink.spans.length, proxy.tunnels]).toEqual([1, ['collector.invalid:80']]);
  });

  it('DESIGN 12: a variable that is set and not carried out is named in the log at the start, never with its value', async () => {
    const { log, lines } = recordingLog();
    const unread = {
      OTEL_CONFIG_FILE: 'hush',
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'hush',
      OTEL_EXPORTER_OTLP_INSECURE: 'hush',
      OTEL_LOGS_EXPORTER: 'hush',
      OTEL_NODE_RESOURCE_DETECTORS: 'hush',
    };
    const partly = { OTEL_EXPORTER_OTLP_HEADERS: 'x=hush', OTEL_TRACES_SAMPLER: 'always_off', OTEL_TRACES_SAMPLER_ARG: '0.5', OTEL_TRACES_EXPORTER: 'otlp' };
    await open({ ...unread, ...partly, OTEL_METRICS_EXPORTER: 'none', OTEL_SERVICE_NAME: '' }, log);
    const { OTEL_TRACES_SAMPLER: _, ...named } = { ...unread, ...partly };

    expect(lines.map(({ level, fields }) => `${level} ${fields['name']}`).sort()).toEqual(
      Object.keys(named)
        .map((name) => `warn ${name}`)
        .sort(),
    );
    expect(JSON.stringify(lines)).not.toContain('hush');
  });
});
