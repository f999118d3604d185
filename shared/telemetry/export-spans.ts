import { randomUUID } from 'node:crypto';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { OtelConfig } from '../config/otel-settings.ts';
import type { TracingConfig } from '../config/tracing-settings.ts';
import { within } from '../within.ts';
import { encodedSpans } from './encoded-spans.ts';
import type { Log } from './log.ts';
import { EXPORT_TIMEOUT_MS } from './open-exporter.ts';
import type { OpenedExporter } from './opened-exporter.ts';
import { readableSpan } from './readable-span.ts';
import { type BatchForm, MAX_WAITING_SPANS, SpanBatches } from './span-batches.ts';
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

/** Sends spans in batches, off the path of the work. @param opened shut down by `stop` */
export async function exportSpans(opened: OpenedExporter, options: ExportSpansOptions): Promise<SpanExport> {
  const { config, log, onDrop = () => {} } = options;
  const { batch, limits, timeoutMs } = config.otel;
  const resource = resourceOf(options);
  const batching = {
    log,
    onDrop,
    maxWaitingSpans: batch.queueSpans ?? MAX_WAITING_SPANS,
    batchSpans: batch.batchSpans ?? (config.content === 'off' ? MAX_BATCH_SPANS : MAX_BATCH_SPANS_WITH_CONTENT),
    delayMs: batch.delayMs ?? BATCH_INTERVAL_MS,
    timeoutMs: batch.timeoutMs ?? (timeoutMs ?? EXPORT_TIMEOUT_MS) * 2,
  };
  const batches =
    opened.form === 'encoded'
      ? new SpanBatches(encodedSpans(resource, limits), opened.exporter, batching)
      : new SpanBatches(await readableSpans(resource, limits), opened.exporter, batching);
  return {
    add: (span, reference) => batches.add(span, reference),
    get dropped() {
      return batches.dropped;
    },
    async stop() {
      const unsent = (error: unknown) => log.debug({ err: error }, 'the last spans could not be sent');
      await within(STOP_MS, batches.stop().catch(unsent), () => {});
    },
  };
}

function resourceOf({ config, service, deploymentEnvironment = null }: ExportSpansOptions): Record<string, string | number> {
  const { otel } = config;
  return {
    'service.namespace': 'switchyard',
    'service.instance.id': randomUUID(),
    'process.pid': process.pid,
    ...(deploymentEnvironment === null ? {} : { 'deployment.environment.name': deploymentEnvironment }),
    ...otel.resource,
    'service.name': config.serviceName ?? otel.resource['service.name'] ?? service,
  };
}

/** As the exporters of the libraries take them. */
async function readableSpans(attributes: Record<string, string | number>, limits: OtelConfig['limits']): Promise<BatchForm<ReadableSpan[]>> {
  const { resourceFromAttributes } = await import('@opentelemetry/resources');
  const resource = resourceFromAttributes(attributes);
  let spans: ReadableSpan[] = [];
  return {
    add(span, reference) {
      const made = readableSpan(span, reference, resource, limits);
      spans.push(made);
      return charsOf(made);
    },
    take() {
      const taken = spans;
      spans = [];
      return taken;
    },
  };
}

function charsOf({ attributes }: ReadableSpan): number {
  return Object.values(attributes).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}
