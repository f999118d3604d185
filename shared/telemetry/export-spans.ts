import { randomUUID } from 'node:crypto';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { TracingConfig } from '../config/tracing-settings.ts';
import { within } from '../within.ts';
import { countedExporter, MAX_WAITING_SPANS } from './counted-exporter.ts';
import type { Log } from './log.ts';
import { EXPORT_TIMEOUT_MS } from './open-exporter.ts';
import { readableSpan } from './readable-span.ts';
import type { SpanReference } from './trace-context.ts';
import type { FinishedSpan } from './tracing.ts';

const MAX_BATCH_SPANS = 512;
/** Collectors accept a few megabytes at a time. */
const MAX_BATCH_SPANS_WITH_CONTENT = 32;
const BATCH_INTERVAL_MS = 1_000;
/** For the last flush. */
const STOP_MS = 2_000;

export interface ExportSpansOptions {
  config: TracingConfig;
  /** Default of `service.name`. */
  service: string;
  /** `traces.deployment_environment` of the manifest. */
  deploymentEnvironment?: string | null;
  log: Log;
  /** Called with the number of lost spans. */
  onDrop?(count: number): void;
}

export interface SpanExport {
  add(span: FinishedSpan, reference: SpanReference): void;
  readonly dropped: number;
  /** Flushes within a time limit. */
  stop(): Promise<void>;
}

/** Sends spans in batches, off the path of the work. @param exporter shut down by `stop` */
export async function exportSpans(exporter: SpanExporter, options: ExportSpansOptions): Promise<SpanExport> {
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
  return {
    add(span, reference) {
      const made = readableSpan(span, reference, resource, otel.limits);
      if (counted.enter(made)) processor.onEnd(made);
    },
    get dropped() {
      return counted.dropped;
    },
    async stop() {
      const unsent = (error: unknown) => log.debug({ err: error }, 'the last spans could not be sent');
      await within(STOP_MS, processor.shutdown().catch(unsent), () => {});
    },
  };
}
