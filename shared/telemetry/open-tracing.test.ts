import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { readSettings } from '../config/settings.ts';
import { type TracingConfig, tracingConfigOf, tracingSettings } from '../config/tracing-settings.ts';
import { silentLog } from './log.ts';
import { tracesUrlOf } from './open-exporter.ts';
import { openTracing, tracingTo } from './open-tracing.ts';
import { spanIdOf, spanReferenceIn } from './trace-context.ts';
import { noTracing, type Tracing } from './tracing.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const UNSAMPLED = `00-${TRACE}-b7ad6b7169203331-00`;
const config = tracingConfigOf(readSettings(tracingSettings, {}));

const opened: Tracing[] = [];
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(opened.splice(0).map((tracing) => tracing.stop()));
});

/** @param take the collector's response to a batch: 0 accepted, 1 refused, null never answered */
async function open(take: () => 0 | 1 | null = () => 0, changes: Partial<TracingConfig> = {}, onDrop?: (count: number) => void) {
  const spans: ReadableSpan[] = [];
  const batches: number[] = [];
  const exporter: SpanExporter = {
    export(batch, done) {
      batches.push(batch.length);
      const code = take();
      if (code === 0) spans.push(...batch);
      if (code !== null) done({ code });
    },
    shutdown: async () => {},
  };
  const options = { config: { ...config, ...changes }, service: 'test', deploymentEnvironment: 'staging', log: silentLog, ...(onDrop && { onDrop }) };
  const tracing = await tracingTo(exporter, options);
  opened.push(tracing);
  return { tracing, spans, batches };
}

describe('a span', () => {
  it('is below its parent, in the same trace, with its attributes, its links and its error', async () => {
    const { tracing, spans } = await open();
    const span = tracing.begin('work', {
      kind: 'client',
      parent: PARENT,
      links: [UNSAMPLED, 'nonsense'],
      attributes: { one: 1, none: undefined },
      startMs: 1_500,
    });
    span.set({ two: ['a', 'b'] });
    span.end('router.timeout');
    span.end();
    await tracing.stop();

    const reference = spanReferenceIn(span.traceparent);
    expect(reference).toMatchObject({ traceId: TRACE, isSampled: true });
    expect(spans).toHaveLength(1);
    expect(spans[0]).toMatchObject({
      name: 'work',
      kind: 2,
      parentSpanContext: { traceId: TRACE, spanId: 'b7ad6b7169203331' },
      startTime: [1, 500_000_000],
      attributes: { one: 1, two: ['a', 'b'], 'error.type': 'router.timeout' },
      links: [{ context: { spanId: 'b7ad6b7169203331' } }],
      status: { code: 2 },
    });
    expect(spans[0]?.attributes).not.toHaveProperty('none');
    expect(spans[0]?.spanContext()).toMatchObject({ spanId: reference?.spanId, traceId: TRACE });
    expect(spans[0]?.resource.attributes).toMatchObject({ 'service.name': 'test', 'deployment.environment.name': 'staging' });
  });

  it('DESIGN 12: work that spans processes is recorded whole by the process that ends it, under an id that all can derive', async () => {
    const { tracing, spans } = await open();
    tracing.record({ name: 'invoke_agent', kind: 'internal', parent: PARENT, spanId: spanIdOf('trn_1'), startMs: 1_000, endMs: 3_250 });
    await tracing.stop();

    expect(spans[0]).toMatchObject({ startTime: [1, 0], endTime: [3, 250_000_000], duration: [2, 250_000_000] });
    expect(spans[0]?.spanContext().spanId).toBe(spanIdOf('trn_1'));
  });

  it('shows no more of a text than it needs', async () => {
    const { tracing, spans } = await open();
    const long = 'x'.repeat(100_000);
    tracing.begin(long, { kind: 'internal', parent: null, attributes: { 'gen_ai.request.model': long, 'gen_ai.input.messages': long } }).end();
    await tracing.stop();

    expect(spans[0]?.name).toHaveLength(256);
    expect(String(spans[0]?.attributes['gen_ai.request.model'])).toHaveLength(256);
    expect(String(spans[0]?.attributes['gen_ai.input.messages'])).toHaveLength(32 * 1_024);
  });
});

describe('sampling', () => {
  it('follows the parent, and propagates what is not recorded', async () => {
    const { tracing, spans } = await open();
    const span = tracing.begin('work', { kind: 'internal', parent: UNSAMPLED });
    span.end();
    tracing.record({ name: 'work', kind: 'internal', parent: UNSAMPLED, startMs: 0, endMs: 1 });
    await tracing.stop();

    expect(span.traceparent).toBe(UNSAMPLED);
    expect(spans).toEqual([]);
  });

  it('samples the traces that begin here by the ratio, the same ones in every process', async () => {
    const { tracing, spans } = await open(() => 0, { sampleRatio: 0.5 });
    const begun = Array.from({ length: 400 }, () => tracing.begin('work', { kind: 'internal', parent: null }));
    for (const span of begun) span.end();
    const sampled = begun.filter((span) => spanReferenceIn(span.traceparent)?.isSampled === true);
    const again = sampled.map((span) => tracing.begin('again', { kind: 'internal', parent: null, traceId: spanReferenceIn(span.traceparent)?.traceId ?? '' }));
    await tracing.stop();

    expect(sampled.length).toBeGreaterThan(120);
    expect(sampled.length).toBeLessThan(280);
    expect(again.every((span) => spanReferenceIn(span.traceparent)?.isSampled)).toBe(true);
    expect(spans).toHaveLength(sampled.length);
  });
});

describe('spans that can not be sent', () => {
  it('DESIGN 12: telemetry never blocks: past the bound of its queue spans are dropped and counted', async () => {
    let reported = 0;
    const { tracing } = await open(
      () => null,
      {},
      (count) => {
        reported += count;
      },
    );
    for (let index = 0; index < 10_000; index += 1) tracing.begin('work', { kind: 'internal', parent: PARENT }).end();

    expect(tracing.dropped).toBe(10_000 - 8_192);
    expect(reported).toBe(tracing.dropped);

    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const onStopped = vi.fn();
    void tracing.stop().then(onStopped);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(onStopped).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(onStopped).toHaveBeenCalledOnce();
  });

  it('occupy the queue no longer than they are tried, also when the exporter throws', async () => {
    let isBroken = true;
    const { tracing, spans } = await open(() => {
      if (isBroken) throw new RangeError('a number that is none');
      return 0;
    });
    for (let index = 0; index < 8_192; index += 1) tracing.begin('work', { kind: 'internal', parent: PARENT }).end();
    await expect.poll(() => tracing.dropped, { timeout: 60_000, interval: 5 }).toBe(8_192);
    isBroken = false;
    tracing.begin('next', { kind: 'internal', parent: PARENT }).end();
    await tracing.stop();

    expect(spans.map(({ name }) => name)).toEqual(['next']);
    expect(tracing.dropped).toBe(8_192);
  });

  it('wait within a memory bound also with content, and are sent in batches that collectors accept', async () => {
    const { tracing, batches } = await open(() => null, { content: 'full' });
    const attributes = { 'gen_ai.input.messages': 'x'.repeat(100_000), 'gen_ai.output.messages': 'y'.repeat(100_000) };
    for (let index = 0; index < 1_000; index += 1) tracing.begin('chat', { kind: 'client', parent: PARENT, attributes }).end();

    expect(tracing.dropped).toBeGreaterThan(400);
    expect(tracing.dropped).toBeLessThan(600);
    await tracing.stop();
    expect(Math.max(...batches)).toBeLessThanOrEqual(32);
  });

  it('are counted when the collector refuses them', async () => {
    const { tracing } = await open(() => 1);
    for (let index = 0; index < 3; index += 1) tracing.begin('work', { kind: 'internal', parent: PARENT }).end();
    await tracing.stop();

    expect(tracing.dropped).toBe(3);
    tracing.begin('late', { kind: 'internal', parent: PARENT }).end();
    expect(tracing.dropped).toBe(3);
  });
});

describe('the address of the collector', () => {
  const backend = { url: 'https://traces.example/base/', authorization: 'Bearer x' };

  it('is none by default', async () => {
    expect(await openTracing({ config, service: 'test', log: silentLog })).toBe(noTracing);
  });

  it.each([
    [{}, 'https://traces.example/base/v1/traces'],
    [{ endpoint: 'http://collector:4318' }, 'http://collector:4318/v1/traces'],
    [{ endpoint: 'http://collector:4318', tracesEndpoint: 'http://other/in' }, 'http://other/in'],
  ])('is that of the environment before that of the manifest: %j', (changes, url) => {
    expect(tracesUrlOf({ ...config, ...changes }, backend)).toBe(url);
  });
});

describe('the headers of the environment', () => {
  /** The requests that a process with this environment sends to the collector. */
  async function sentTo(reference: 'environment' | 'manifest'): Promise<IncomingHttpHeaders> {
    let received: IncomingHttpHeaders = {};
    const server = createServer((request, response) => {
      received = request.headers;
      request.resume().on('end', () => response.end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    vi.stubEnv('OTEL_EXPORTER_OTLP_HEADERS', 'x-team=hush');
    const own = { ...config, endpoint: reference === 'environment' ? url : null, headers: { 'x-team': 'hush' } };
    const backend = reference === 'manifest' ? { url, authorization: 'Bearer own' } : null;
    const tracing = await openTracing({ config: own, service: 'test', backend, log: silentLog });
    tracing.begin('work', { kind: 'internal', parent: PARENT }).end();
    await tracing.stop();
    expect(process.env['OTEL_EXPORTER_OTLP_HEADERS']).toBe('x-team=hush');
    vi.unstubAllEnvs();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    return received;
  }

  it('are for its own collector: that of the manifest, or a platform, gets none of them', async () => {
    expect(await sentTo('environment')).toMatchObject({ 'x-team': 'hush' });
    const headers = await sentTo('manifest');
    expect(headers).toMatchObject({ authorization: 'Bearer own', 'content-type': 'application/x-protobuf' });
    expect(headers).not.toHaveProperty('x-team');
  });
});

describe('without a collector', () => {
  it('every context is forwarded unchanged, and a named trace still has its name', () => {
    expect(noTracing.begin('work', { kind: 'internal', parent: PARENT }).traceparent).toBe(PARENT);
    expect(spanReferenceIn(noTracing.begin('work', { kind: 'internal', parent: null, traceId: TRACE }).traceparent)?.traceId).toBe(TRACE);
    expect(spanReferenceIn(noTracing.begin('work', { kind: 'internal', parent: null }).traceparent)).not.toBeNull();
  });
});
