import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Environment } from '../config/secret-ref.ts';
import { unusedOtelSettings } from '../config/unused-otel-settings.ts';
import { type ExportSpansOptions, exportSpans } from './export-spans.ts';
import { LocalTraces } from './local-traces.ts';
import { openExporters, type TracesBackend } from './open-exporter.ts';
import type { OpenedExporter } from './opened-exporter.ts';
import { spanReferenceOf, unsampled } from './sampling.ts';
import { type SpanReference, traceparentOf } from './trace-context.ts';
import { type FinishedSpan, noTracing, type Span, type SpanOptions, type Tracing, unrecordedSpan } from './tracing.ts';

export interface OpenTracingOptions extends ExportSpansOptions {
  /** Used when the environment names no endpoint. */
  backend?: TracesBackend | null;
  /** Default: that of the process. */
  environment?: Environment;
  /** Whether the last traces are kept in memory, to be shown; not if the environment switches recording off. */
  keepsTraces?: boolean;
}

/**
 * Opens tracing: exports spans in batches, off the path of the work. Without a destination nothing is recorded; without an exporter
 * the libraries are not loaded.
 * Logs variables that are set but not supported.
 * @throws `config.invalid`
 */
export async function openTracing({
  config,
  backend = null,
  environment = process.env,
  log,
  keepsTraces = false,
  ...options
}: OpenTracingOptions): Promise<Tracing> {
  for (const unused of unusedOtelSettings(environment))
    log.warn({ ...unused }, `${unused.name} is set, but has no effect or only part of it: ${unused.reason}`);
  const exporters = await openExporters(config, backend, environment, log);
  const local = keepsTraces && config.otel.exporters?.length !== 0 ? new LocalTraces({ limits: config.otel.limits }) : null;
  return exporters.length === 0 && local === null ? noTracing : tracingBy(exporters, { config, log, ...options }, local);
}

/** @param exporter shut down by `stop`; null: none */
export function tracingTo(exporter: SpanExporter | null, options: ExportSpansOptions, local: LocalTraces | null = null): Promise<Tracing> {
  return tracingBy(exporter === null ? [] : [{ form: 'readable', exporter }], options, local);
}

async function tracingBy(opened: readonly OpenedExporter[], options: ExportSpansOptions, local: LocalTraces | null): Promise<Tracing> {
  const { config } = options;
  const exports = await Promise.all(opened.map((one) => exportSpans(one, options)));
  let isStopped = false;

  const record = (span: FinishedSpan, reference: SpanReference) => {
    if (isStopped || !reference.isSampled) return;
    for (const exported of exports) exported.add(span, reference);
    local?.add(span, reference);
  };
  return {
    content: config.content,
    local,
    get dropped() {
      return exports.reduce((sum, { dropped }) => sum + dropped, 0);
    },
    begin(name, options) {
      const reference = spanReferenceOf(options, config);
      if (!reference.isSampled) return options.parent === null ? unrecorded(reference) : unrecordedSpan(unsampled(options.parent));
      return openSpan(name, options, reference, record);
    },
    record: (span) => record(span, spanReferenceOf(span, config)),
    async stop() {
      isStopped = true;
      await Promise.all(exports.map((exported) => exported.stop()));
    },
  };
}

function unrecorded(reference: SpanReference): Span {
  return { traceparent: traceparentOf(reference), set() {}, end() {} };
}

function openSpan(name: string, options: SpanOptions, reference: SpanReference, record: (span: FinishedSpan, reference: SpanReference) => void): Span {
  const { startMs = Date.now() } = options;
  const startedAt = performance.now() - (options.startMs === undefined ? 0 : Date.now() - options.startMs);
  const { kind, parent, links = [], scope = 'switchyard' } = options;
  const attributes = Object.assign({}, options.attributes);
  let isEnded = false;
  return {
    traceparent: traceparentOf(reference),
    set(more) {
      Object.assign(attributes, more);
    },
    end(errorType = null) {
      if (isEnded) return;
      isEnded = true;
      record({ name, kind, parent, links, scope, attributes, startMs, endMs: startMs + performance.now() - startedAt, errorType }, reference);
    },
  };
}
