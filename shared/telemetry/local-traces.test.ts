import { describe, expect, it } from 'vitest';
import { readSettings } from '../config/settings.ts';
import { tracingConfigOf, tracingSettings } from '../config/tracing-settings.ts';
import { localTrace, traceList } from '../contracts/local-trace.ts';
import { LocalTraces } from './local-traces.ts';
import { silentLog } from './log.ts';
import { openTracing, tracingTo } from './open-tracing.ts';
import { spanReferenceIn } from './trace-context.ts';
import { type FinishedSpan, noTracing } from './tracing.ts';

const { otel } = tracingConfigOf(readSettings(tracingSettings, {}));

function traceparent(trace: number, span: number): string {
  return `00-${trace.toString(16).padStart(32, '0')}-${span.toString(16).padStart(16, '0')}-01`;
}

function open(maxBytes?: number) {
  const traces = new LocalTraces({ limits: otel.limits, ...(maxBytes !== undefined && { maxBytes }) });
  const add = (trace: number, span: number, more: Partial<FinishedSpan> = {}) => {
    const reference = spanReferenceIn(traceparent(trace, span));
    if (reference === null) throw new Error('the reference is invalid');
    traces.add({ name: `span ${span}`, kind: 'internal', parent: null, startMs: 1_000 + span, endMs: 1_010 + span, ...more }, reference);
  };
  const idOf = (trace: number) => trace.toString(16).padStart(32, '0');
  return { traces, add, idOf };
}

describe('the traces that a process keeps', () => {
  it('show a trace with its spans by their begin, and its root, times and first error in short', () => {
    const { traces, add, idOf } = open();
    add(1, 3, { parent: traceparent(1, 2), errorType: 'router.provider_unavailable', startMs: 1_020, endMs: 1_030 });
    add(1, 2, { name: 'POST /sessions', parent: traceparent(1, 999), kind: 'server', attributes: { a: 'text', n: 1, gone: undefined, list: ['x'] } });

    expect(traceList.parse({ traces: traces.list(10) }).traces).toEqual([
      {
        trace_id: idOf(1),
        name: 'POST /sessions',
        started_at: '1970-01-01T00:00:01.002Z',
        duration_ms: 28,
        spans: 2,
        error_type: 'router.provider_unavailable',
      },
    ]);
    const one = localTrace.parse(traces.one(idOf(1)));
    expect(one.spans.map(({ name, parent_span_id: parent }) => [name, parent])).toEqual([
      ['POST /sessions', '00000000000003e7'],
      ['span 3', '0000000000000002'],
    ]);
    expect(one.spans[0]?.attributes).toEqual({ a: 'text', n: 1, list: ['x'] });
  });

  it('are listed newest last span first, as many as are asked for', () => {
    const { traces, add, idOf } = open();
    for (const trace of [1, 2, 3, 1]) add(trace, trace);
    expect(traces.list(2).map(({ trace_id: id }) => id)).toEqual([idOf(1), idOf(3)]);
  });

  it('stay within their bytes: the trace whose last span is oldest goes first, whole', () => {
    const { traces, add, idOf } = open(100_000);
    for (let trace = 1; trace <= 50; trace += 1) {
      add(trace, 1, { attributes: { text: 'x'.repeat(200) } });
      add(trace, 2, { attributes: { 'gen_ai.input.messages': 'x'.repeat(2_000) } });
      expect(traces.bytes).toBeLessThanOrEqual(100_000);
    }
    expect(traces.one(idOf(1))).toBeNull();
    expect(traces.one(idOf(50))?.spans).toHaveLength(2);
    expect(traces.list(200).length).toBeGreaterThan(10);
  });

  it('bound one trace, and say what is missing of it', () => {
    const { traces, add, idOf } = open();
    for (let span = 1; span <= 2_100; span += 1) add(1, span);
    expect(traces.one(idOf(1))).toMatchObject({ omitted_spans: 100 });
    for (let span = 1; span <= 100; span += 1) add(2, span, { attributes: { 'gen_ai.input.messages': 'x'.repeat(40_000) } });
    expect(traces.one(idOf(2))?.omitted_spans).toBeGreaterThan(60);
  });

  it('cut attributes as an export does', () => {
    const { traces, add, idOf } = open();
    add(1, 1, { attributes: { text: 'x'.repeat(1_000) }, events: [{ name: 'fact', atMs: 5, attributes: { text: 'y'.repeat(1_000) } }] });
    const [span] = traces.one(idOf(1))?.spans ?? [];
    expect([String(span?.attributes['text']).length, String(span?.events[0]?.attributes['text']).length]).toEqual([256, 256]);
  });
});

describe('tracing without a collector', () => {
  const opened = (environment: Record<string, string>, keepsTraces: boolean) => {
    const config = tracingConfigOf(readSettings(tracingSettings, environment));
    return openTracing({ config, service: 'test', environment, log: silentLog, keepsTraces });
  };

  it('keeps sampled spans in memory', async () => {
    const tracing = await opened({}, true);
    const span = tracing.begin('GET /x', { kind: 'server', parent: null });
    tracing.begin('not sampled', { kind: 'server', parent: traceparent(7, 7).replace(/01$/, '00') }).end();
    span.end();
    expect(tracing.local?.list(10).map(({ name }) => name)).toEqual(['GET /x']);
    await tracing.stop();
  });

  it('records nothing when it is off, by its setting or for all of OpenTelemetry', async () => {
    expect(await opened({}, false)).toBe(noTracing);
    expect(await opened({ OTEL_SDK_DISABLED: 'true' }, true)).toBe(noTracing);
  });

  it('keeps no trace of a sample of none', async () => {
    const tracing = await opened({ OTEL_TRACES_SAMPLER_ARG: '0' }, true);
    tracing.begin('GET /x', { kind: 'server', parent: null }).end();
    expect(tracing.local?.list(10)).toEqual([]);
  });

  it('keeps the spans that it also exports', async () => {
    const config = tracingConfigOf(readSettings(tracingSettings, {}));
    const names: string[] = [];
    const exporter = {
      export: (spans: { name: string }[], done: (result: { code: number }) => void) => {
        names.push(...spans.map(({ name }) => name));
        done({ code: 0 });
      },
      shutdown: async () => {},
    };
    const local = new LocalTraces({ limits: otel.limits });
    const tracing = await tracingTo(exporter, { config, service: 'test', log: silentLog }, local);
    tracing.begin('both', { kind: 'internal', parent: null }).end();
    await tracing.stop();
    expect([names, local.list(10).map(({ name }) => name)]).toEqual([['both'], ['both']]);
  });
});
