import { randomUUID } from 'node:crypto';
import type { HrTime, Attributes as OtelAttributes, SpanContext } from '@opentelemetry/api';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { TracingConfig } from '../config/tracing-settings.ts';
import { traceId as newTraceId } from '../ids.ts';
import { countedExporter, MAX_WAITING_SPANS } from './counted-exporter.ts';
import { GEN_AI_SCHEMA_URL } from './gen-ai.ts';
import type { Log } from './log.ts';
import { newSpanId, placeIn, type SpanPlace, traceparentOf } from './trace-context.ts';
import {
  type Attributes,
  type FinishedSpan,
  noTracing,
  type Span,
  type SpanKind,
  type SpanOptions,
  type SpanScope,
  spanThatHandsOn,
  type Tracing,
} from './tracing.ts';

const MAX_BATCH_SPANS = 512;
/** With what was said in them: collectors take a few megabytes at a time. */
const MAX_BATCH_SPANS_WITH_CONTENT = 32;
const BATCH_INTERVAL_MS = 1_000;
/** For one batch, with the exporter's own repeats. */
const EXPORT_TIMEOUT_MS = 10_000;
/** For what still waits when the process stops. */
const STOP_MS = 2_000;
/** Of one text. Names and ids are shorter; what callers choose freely is cut. */
const MAX_TEXT_CHARS = 256;
/** Of a text that is shown because content capture asks for it. */
const MAX_CONTENT_CHARS = 32 * 1_024;
const CONTENT = /^gen_ai\.(?:input\.messages|output\.messages|system_instructions|tool\.call\.(?:arguments|result))$/;
const HEADER_VARIABLES = ['OTEL_EXPORTER_OTLP_HEADERS', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'];
const NANOS_PER_MS = 1_000_000;

const KINDS: Record<SpanKind, number> = { internal: 0, server: 1, client: 2, producer: 3 };
const STATUS = { unset: 0, error: 2 } as const;

/** The manifest's own backend, its key resolved. */
export interface TracesBackend {
  /** Without the path of the signal. */
  url: string;
  /** The whole value of the header; null: none. */
  authorization: string | null;
}

export interface OpenTracingOptions {
  config: TracingConfig;
  /** The process' name, unless the configuration has another. */
  service: string;
  /** Used when the environment names no endpoint. */
  backend?: TracesBackend | null;
  /** `traces.deployment_environment` of the manifest. */
  deploymentEnvironment?: string | null;
  log: Log;
  /** Hears of spans that are lost. */
  onDrop?(count: number): void;
}

/** The address that spans are posted to; null: they are not recorded. */
export function tracesUrlOf(config: Pick<TracingConfig, 'tracesEndpoint' | 'endpoint'>, backend: TracesBackend | null = null): string | null {
  if (config.tracesEndpoint !== null) return config.tracesEndpoint;
  const base = config.endpoint ?? backend?.url ?? null;
  return base === null ? null : `${base.replace(/\/+$/, '')}/v1/traces`;
}

/**
 * Records spans and sends them as OTLP over HTTP (protobuf), in batches, behind the back of whoever made them. Without an endpoint it
 * records nothing, and the libraries are not even loaded.
 */
export async function openTracing({
  config,
  service,
  backend = null,
  deploymentEnvironment = null,
  log,
  onDrop = () => {},
}: OpenTracingOptions): Promise<Tracing> {
  const url = tracesUrlOf(config, backend);
  if (url === null) return noTracing;
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  const isFromEnvironment = config.tracesEndpoint !== null || config.endpoint !== null;
  const authorization = backend?.authorization ?? null;
  const ownHeaders = authorization === null ? {} : { authorization };
  // What the environment sends to its own collector, such as a key, is no business of another.
  const exporter = isFromEnvironment
    ? new OTLPTraceExporter({ url, headers: config.headers, timeoutMillis: EXPORT_TIMEOUT_MS })
    : withoutEnvironmentHeaders(() => new OTLPTraceExporter({ url, headers: ownHeaders, timeoutMillis: EXPORT_TIMEOUT_MS }));
  return tracingTo(exporter, { config, service, deploymentEnvironment, log, onDrop });
}

/** The library adds the headers of the environment by itself to all that it sends, and knows no option against it. */
function withoutEnvironmentHeaders<Made>(make: () => Made): Made {
  const kept = HEADER_VARIABLES.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [{ name, value }];
  });
  for (const { name } of kept) delete process.env[name];
  try {
    return make();
  } finally {
    for (const { name, value } of kept) process.env[name] = value;
  }
}

/** @param exporter what is sent ends here; it is shut down with the rest */
export async function tracingTo(exporter: SpanExporter, options: Omit<OpenTracingOptions, 'backend'>): Promise<Tracing> {
  const { config, service, deploymentEnvironment = null, log, onDrop = () => {} } = options;
  const [{ BatchSpanProcessor }, { resourceFromAttributes }] = await Promise.all([import('@opentelemetry/sdk-trace-base'), import('@opentelemetry/resources')]);
  const resource = resourceFromAttributes({
    'service.name': config.serviceName ?? service,
    'service.namespace': 'switchyard',
    'service.instance.id': randomUUID(),
    'process.pid': process.pid,
    ...(deploymentEnvironment === null ? {} : { 'deployment.environment.name': deploymentEnvironment }),
  });
  const counted = countedExporter(exporter, log, onDrop);
  const processor = new BatchSpanProcessor(counted.exporter, {
    // Ours is the bound, and ours the count: the library keeps its own to itself.
    maxQueueSize: MAX_WAITING_SPANS * 2,
    maxExportBatchSize: config.content === 'off' ? MAX_BATCH_SPANS : MAX_BATCH_SPANS_WITH_CONTENT,
    scheduledDelayMillis: BATCH_INTERVAL_MS,
    exportTimeoutMillis: EXPORT_TIMEOUT_MS * 2,
  });
  let isStopped = false;

  const keep = (span: FinishedSpan, place: SpanPlace) => {
    if (isStopped || !place.isSampled) return;
    const made = readable(span, place, resource);
    if (counted.enter(made)) processor.onEnd(made);
  };
  return {
    content: config.content,
    get dropped() {
      return counted.dropped;
    },
    begin(name, options) {
      const place = placeOf(options, config.sampleRatio);
      if (!place.isSampled) return options.parent === null ? unrecorded(place) : spanThatHandsOn(options.parent);
      return openSpan(name, options, place, keep);
    },
    record: (span) => keep(span, placeOf(span, config.sampleRatio)),
    async stop() {
      isStopped = true;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, STOP_MS);
      });
      await Promise.race([processor.shutdown().catch((error: unknown) => log.debug({ err: error }, 'the last spans could not be sent')), late]);
      clearTimeout(timer);
    },
  };
}

/** Below its parent a span is recorded as that is; a trace that begins here by the ratio. */
function placeOf({ parent, spanId = newSpanId(), traceId }: SpanOptions | FinishedSpan, sampleRatio: number): SpanPlace {
  const above = placeIn(parent);
  if (above !== null) return { traceId: above.traceId, spanId, isSampled: above.isSampled };
  const own = traceId ?? newTraceId();
  return { traceId: own, spanId, isSampled: isChosen(own, sampleRatio) };
}

/** The same trace is chosen, or not, wherever it is asked. The last 7 bytes are what W3C calls random. */
function isChosen(traceId: string, ratio: number): boolean {
  return ratio >= 1 || Number.parseInt(traceId.slice(-13), 16) / 16 ** 13 < ratio;
}

function unrecorded(place: SpanPlace): Span {
  return { traceparent: traceparentOf(place), set() {}, end() {} };
}

function openSpan(name: string, options: SpanOptions, place: SpanPlace, keep: (span: FinishedSpan, place: SpanPlace) => void): Span {
  const { startMs = Date.now() } = options;
  const beganAt = performance.now() - (options.startMs === undefined ? 0 : Date.now() - options.startMs);
  let attributes: Attributes = options.attributes ?? {};
  let isEnded = false;
  return {
    traceparent: traceparentOf(place),
    set(more) {
      attributes = Object.assign({}, attributes, more);
    },
    end(errorType = null) {
      if (isEnded) return;
      isEnded = true;
      keep({ ...options, name, attributes, startMs, endMs: startMs + performance.now() - beganAt, errorType }, place);
    },
  };
}

function readable(span: FinishedSpan, place: SpanPlace, resource: ReadableSpan['resource']): ReadableSpan {
  const { name, kind, parent, links = [], attributes = {}, startMs, endMs, errorType = null, scope = 'switchyard' } = span;
  const above = placeIn(parent);
  const context = contextOf(place);
  return {
    name: cut(name, MAX_TEXT_CHARS),
    kind: KINDS[kind],
    spanContext: () => context,
    ...(above === null ? {} : { parentSpanContext: contextOf(above) }),
    startTime: hrTime(startMs),
    endTime: hrTime(Math.max(startMs, endMs)),
    duration: hrTime(Math.max(0, endMs - startMs)),
    status: { code: errorType === null ? STATUS.unset : STATUS.error },
    attributes: shown(errorType === null ? attributes : { ...attributes, 'error.type': errorType }),
    links: links.flatMap((link) => {
      const linked = placeIn(link);
      return linked === null ? [] : [{ context: contextOf(linked) }];
    }),
    events: [],
    ended: true,
    resource,
    instrumentationScope: scopeOf(scope),
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function scopeOf(name: SpanScope): ReadableSpan['instrumentationScope'] {
  return name === 'switchyard.gen_ai' ? { name, schemaUrl: GEN_AI_SCHEMA_URL } : { name };
}

function contextOf({ traceId, spanId, isSampled }: SpanPlace): SpanContext {
  return { traceId, spanId, traceFlags: isSampled ? 1 : 0 };
}

function shown(attributes: Attributes): OtelAttributes {
  const all: OtelAttributes = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    const most = CONTENT.test(name) ? MAX_CONTENT_CHARS : MAX_TEXT_CHARS;
    if (typeof value === 'string') all[name] = cut(value, most);
    else if (typeof value === 'object') all[name] = value.map((text) => cut(text, most));
    else all[name] = value;
  }
  return all;
}

function cut(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.floor((ms - seconds * 1_000) * NANOS_PER_MS)];
}
