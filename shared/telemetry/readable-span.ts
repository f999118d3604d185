import type { HrTime, SpanContext } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import type { OtelConfig } from '../config/otel-settings.ts';
import { cut, DEFAULT_COUNT_LIMIT, MAX_TEXT_CHARS, mostCharsOf, SCOPES, SPAN_KINDS, STATUS } from './span-bounds.ts';
import { type SpanReference, spanReferenceIn } from './trace-context.ts';
import type { Attributes, FinishedSpan, SpanEvent } from './tracing.ts';

const NANOS_PER_MS = 1_000_000;

type Kept = Record<string, string | number | boolean | string[]>;

/** Converts a finished span to the exporters' `ReadableSpan`. */
export function readableSpan(span: FinishedSpan, index: SpanReference, resource: ReadableSpan['resource'], limits: OtelConfig['limits']): ReadableSpan {
  const { name, kind, parent, links = [], attributes = {}, startMs, endMs, errorType = null, scope = 'switchyard', events = [] } = span;
  const above = spanReferenceIn(parent);
  const context = contextOf(index);
  const { attributes: mostAttributes, valueChars, links: mostLinks, events: mostEvents, eventAttributes: mostOfEvent } = limits;
  const { kept, droppedCount } = keptOf(errorType === null ? attributes : { ...attributes, 'error.type': errorType }, mostAttributes, valueChars);
  const linked = links.flatMap((link) => spanReferenceIn(link) ?? []);
  const keptLinks = linked.slice(0, mostLinks ?? DEFAULT_COUNT_LIMIT);
  const keptEvents = events.slice(0, mostEvents ?? DEFAULT_COUNT_LIMIT);
  return {
    name: cut(name, MAX_TEXT_CHARS),
    kind: SPAN_KINDS[kind],
    spanContext: () => context,
    ...(above === null ? {} : { parentSpanContext: contextOf(above) }),
    startTime: hrTime(startMs),
    endTime: hrTime(Math.max(startMs, endMs)),
    duration: hrTime(Math.max(0, endMs - startMs)),
    status: { code: errorType === null ? STATUS.unset : STATUS.error },
    attributes: kept,
    links: keptLinks.map((link) => ({ context: contextOf(link) })),
    events: keptEvents.map((event) => eventOf(event, mostOfEvent, valueChars)),
    ended: true,
    resource,
    instrumentationScope: SCOPES[scope],
    droppedAttributesCount: droppedCount,
    droppedEventsCount: events.length - keptEvents.length,
    droppedLinksCount: linked.length - keptLinks.length,
  };
}

function eventOf({ name, atMs, attributes = {} }: SpanEvent, most: number | null, valueChars: number | null): ReadableSpan['events'][number] {
  const { kept, droppedCount } = keptOf(attributes, most, valueChars);
  return { name: cut(name, MAX_TEXT_CHARS), time: hrTime(atMs), attributes: kept, droppedAttributesCount: droppedCount };
}

function contextOf({ traceId, spanId, isSampled }: SpanReference): SpanContext {
  return { traceId, spanId, traceFlags: isSampled ? 1 : 0 };
}

/** @param mostGiven attributes, null: the default @param valueChars of a value, null: the limits of their kinds */
function keptOf(attributes: Attributes, mostGiven: number | null, valueChars: number | null): { kept: Kept; droppedCount: number } {
  const kept: Kept = {};
  const most = mostGiven ?? DEFAULT_COUNT_LIMIT;
  let count = 0;
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    count += 1;
    if (count > most) continue;
    const mostChars = Math.min(mostCharsOf(name), valueChars ?? Number.POSITIVE_INFINITY);
    if (typeof value === 'string') kept[name] = cut(value, mostChars);
    else if (typeof value === 'object') kept[name] = value.map((text) => cut(text, mostChars));
    else kept[name] = value;
  }
  return { kept, droppedCount: Math.max(0, count - most) };
}

/** Within the bounds of a span's attributes. */
export function keptAttributes(attributes: Attributes, { attributes: most, valueChars }: OtelConfig['limits']): Attributes {
  return keptOf(attributes, most, valueChars).kept;
}

function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.floor((ms - seconds * 1_000) * NANOS_PER_MS)];
}
