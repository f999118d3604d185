import { randomUUID } from 'node:crypto';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Environment } from '../config/secret-ref.ts';
import type { TracingConfig } from '../config/tracing-settings.ts';
import { unusedOtelSettings } from '../config/unused-otel-settings.ts';
import { within } from '../within.ts';
import { countedExporter, MAX_WAITING_SPANS } from './counted-exporter.ts';
import type { Log } from './log.ts';
import { EXPORT_TIMEOUT_MS, openExporter, type TracesBackend } from './open-exporter.ts';
import { readableSpan } from './readable-span.ts';
import { spanReferenceOf, unsampled } from './sampling.ts';
import { type SpanReference, traceparentOf } from './trace-context.ts';
import { type Attributes, type FinishedSpan, noTracing, type Span, type SpanOptions, type Tracing, unrecordedSpan } from './tracing.ts';

const MAX_BATCH_SPANS = 512;
/** Collectors accept a few megabytes at a time. */
const MAX_BATCH_SPANS_WITH_CONTENT = 32;
const BATCH_INTERVAL_MS = 1_000;
/** For the last flush. */
const STOP_MS = 2_000;

export interface OpenTracingOptions {
  config: TracingConfig;
  /** Default of `service.name`. */
  service: string;
  /** Used when the environment names no endpoint. */
  backend?: TracesBackend | null;
  /** `traces.deployment_environment` of the manifest. */
  deploymentEnvironment?: string | null;
  /** Default: that of the process. */
  environment?: Environment;
  log: Log;
  /** Called with the number of lost spans. */
  onDrop?(count: number): void;
}

/**
 * Opens tracing: exports spans in batches, off the path of the work. Without a destination nothing is recorded, and the libraries are not loaded.
 * Logs variables that are set but not supported.
 * @throws `config.invalid`
 */
export async function openTracing({ config, backend = null, environment = process.env, log, ...options }: OpenTracingOptions): Promise<Tracing> {
  for (const unused of unusedOtelSettings(environment))
    log.warn({ ...unused }, `${unused.name} is set, but has no effect or only part of it: ${unused.reason}`);
  const exporter = await openExporter(config, backend, environment, log);
  return exporter === null ? noTracing : tracingTo(exporter, { config, log, ...options });
}

/** @param exporter shut down by `stop` */
export async function tracingTo(exporter: SpanExporter, options: Omit<OpenTracingOptions, 'backend' | 'environment'>): Promise<Tracing> {
  const { config, service, deploymentEnvironment = null, log, onDrop = () => {} } = options;
  const { otel } = config;
  const [{ BatchSpanProcessor }, { resourceFromAttributes }] = await Promise.all([import('@opentelemetry/sdk-trace-base'), import('@opentelemetry/resources')]);
  const resource = resourceFromAttributes({
    'service.namespace': 'switchyard',
    'service.instance.id': randomUUID(),
    'process.pid': process.pid,
    ...(deploymentEnvironment === null ? {} : { 'deployment.environment.name': deploymentEnvironment }),
    ...otel.resource,
    'service.name': config.serviceName ?? otel.resource['service.name'] ?? service,
  });
  const maxWaitingSpans = otel.batch.queueSpans ?? MAX_WAITING_SPANS;
  const counted = countedExporter(exporter, { log, onDrop, maxWaitingSpans });
  const processor = new BatchSpanProcessor(counted.exporter, {
    // `countedExporter` bounds the queue, since the library does not report what it drops.
    maxQueueSize: maxWaitingSpans * 2,
    maxExportBatchSize: otel.batch.batchSpans ?? (config.content === 'off' ? MAX_BATCH_SPANS : MAX_BATCH_SPANS_WITH_CONTENT),
    scheduledDelayMillis: otel.batch.delayMs ?? BATCH_INTERVAL_MS,
    exportTimeoutMillis: otel.batch.timeoutMs ?? (otel.timeoutMs ?? EXPORT_TIMEOUT_MS) * 2,
  });
  let isStopped = false;

  const record = (span: FinishedSpan, reference: SpanReference) => {
    if (isStopped || !reference.isSampled) return;
    const made = readableSpan(span, reference, resource, otel.limits);
    if (counted.enter(made)) processor.onEnd(made);
  };
  return {
    content: config.content,
    get dropped() {
      return counted.dropped;
    },
    begin(name, options) {
      const reference = spanReferenceOf(options, config);
      if (!reference.isSampled) return options.parent === null ? unrecorded(reference) : unrecordedSpan(unsampled(options.parent));
      return openSpan(name, options, reference, record);
    },
    record: (span) => record(span, spanReferenceOf(span, config)),
    async stop() {
      isStopped = true;
      const unsent = (error: unknown) => log.debug({ err: error }, 'the last spans could not be sent');
      await within(STOP_MS, processor.shutdown().catch(unsent), () => {});
    },
  };
}

function unrecorded(reference: SpanReference): Span {
  return { traceparent: traceparentOf(reference), set() {}, end() {} };
}

function openSpan(name: string, options: SpanOptions, reference: SpanReference, record: (span: FinishedSpan, reference: SpanReference) => void): Span {
  const { startMs = Date.now() } = options;
  const startedAt = performance.now() - (options.startMs === undefined ? 0 : Date.now() - options.startMs);
  let attributes: Attributes = options.attributes ?? {};
  let isEnded = false;
  return {
    traceparent: traceparentOf(reference),
    set(more) {
      attributes = Object.assign({}, attributes, more);
    },
    end(errorType = null) {
      if (isEnded) return;
      isEnded = true;
      record({ ...options, name, attributes, startMs, endMs: startMs + performance.now() - startedAt, errorType }, reference);
    },
  };
}
