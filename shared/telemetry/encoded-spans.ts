import type { OtelConfig } from '../config/otel-settings.ts';
import { ProtobufWriter } from './protobuf-writer.ts';
import type { BatchForm } from './span-batches.ts';
import { cut, DEFAULT_COUNT_LIMIT, MAX_TEXT_CHARS, mostCharsOf, SCOPES, SPAN_KINDS, STATUS } from './span-bounds.ts';
import { type SpanReference, spanReferenceIn } from './trace-context.ts';
import type { Attributes, FinishedSpan, SpanEvent, SpanScope } from './tracing.ts';

/** A request of OTLP, `ExportTraceServiceRequest`. */
export interface EncodedSpans {
  bytes: Uint8Array;
  count: number;
}

/** Kept between batches, for each scope. */
const MAX_KEPT_BYTES = 1_024 * 1_024;
/** Callers choose some: beyond it a name is encoded each time. */
const MAX_KNOWN_NAMES = 1_000;
/** Whether a context is remote is known, and it is not. */
const FLAGS = 0x100;
/** Integers below it are an int64. */
const TWO_63 = 2 ** 63;
const TWO_16 = 2 ** 16;
const TWO_32 = 2 ** 32;
const NANOS_PER_SECOND = 1e9;
const NANOS_PER_MS = 1e6;

interface Name {
  /** The field `key` of a `KeyValue`. */
  bytes: Uint8Array;
  mostChars: number;
}

/** Field numbers of opentelemetry/proto/trace/v1/trace.proto, in the order in which they are written. */
const SPAN = { traceId: 1, spanId: 2, parent: 4, name: 5, kind: 6, start: 7, end: 8, attributes: 9, droppedAttributes: 10, events: 11 } as const;
const SPAN_REST = { droppedEvents: 12, links: 13, droppedLinks: 14, status: 15, flags: 16 } as const;

/**
 * Encodes spans as they end, in the order of the fields that the library has. A span that waits for its batch is bytes then, which no collector of garbage
 * copies (ADR 153).
 */
export function encodedSpans(resource: Readonly<Record<string, string | number>>, limits: OtelConfig['limits']): BatchForm<EncodedSpans> {
  return new SpanEncoder(resource, limits);
}

class SpanEncoder implements BatchForm<EncodedSpans> {
  readonly #limits: OtelConfig['limits'];
  readonly #resource: Uint8Array;
  readonly #names = new Map<string, Name>();
  /** Spans of each scope, those of this batch in the order of their first spans. */
  readonly #writers = new Map<SpanScope, ProtobufWriter>();
  #scopes: SpanScope[] = [];
  #count = 0;

  constructor(resource: Readonly<Record<string, string | number>>, limits: OtelConfig['limits']) {
    this.#limits = limits;
    this.#resource = encodedResource(resource);
  }

  add(span: FinishedSpan, reference: SpanReference): number {
    const { scope = 'switchyard' } = span;
    let writer = this.#writers.get(scope);
    if (writer === undefined) {
      writer = new ProtobufWriter();
      this.#writers.set(scope, writer);
    }
    const before = writer.length;
    if (before === 0) this.#scopes.push(scope);
    this.#count += 1;
    try {
      this.#span(writer, span, reference);
    } catch (error) {
      // Otherwise those behind it would be read as parts of it.
      writer.truncate(before);
      this.#count -= 1;
      if (before === 0) this.#scopes.pop();
      throw error;
    }
    return writer.length - before;
  }

  take(): EncodedSpans {
    const request = new ProtobufWriter();
    const resourceSpans = request.begin(1);
    request.raw(this.#resource);
    for (const scope of this.#scopes) this.#scopeSpans(request, scope);
    request.end(resourceSpans);
    const taken = { bytes: request.written, count: this.#count };
    this.#scopes = [];
    this.#count = 0;
    return taken;
  }

  #scopeSpans(request: ProtobufWriter, scope: SpanScope): void {
    const writer = this.#writers.get(scope);
    if (writer === undefined) return;
    const { name, schemaUrl } = SCOPES[scope];
    const scopeSpans = request.begin(2);
    const described = request.begin(1);
    request.text(1, name);
    request.end(described);
    request.raw(writer.written);
    if (schemaUrl !== undefined) request.text(3, schemaUrl);
    request.end(scopeSpans);
    writer.clear(MAX_KEPT_BYTES);
  }

  #span(writer: ProtobufWriter, span: FinishedSpan, { traceId, spanId, isSampled }: SpanReference): void {
    const { name, kind, parent, links = [], attributes = {}, startMs, endMs, errorType = null, events = [] } = span;
    const { attributes: mostAttributes, links: mostLinks, events: mostEvents, eventAttributes } = this.#limits;
    const start = writer.begin(2);
    writer.hex(SPAN.traceId, traceId);
    writer.hex(SPAN.spanId, spanId);
    const above = spanReferenceIn(parent);
    if (above !== null) writer.hex(SPAN.parent, above.spanId);
    writer.text(SPAN.name, cut(name, MAX_TEXT_CHARS));
    // Zero is a kind that is not said.
    writer.uint(SPAN.kind, SPAN_KINDS[kind] + 1);
    writeInstant(writer, SPAN.start, startMs);
    writeInstant(writer, SPAN.end, Math.max(startMs, endMs));
    const all = errorType === null ? attributes : { ...attributes, 'error.type': errorType };
    writer.uint(SPAN.droppedAttributes, this.#attributes(writer, SPAN.attributes, all, mostAttributes));
    const keptEvents = events.slice(0, mostEvents ?? DEFAULT_COUNT_LIMIT);
    for (const event of keptEvents) this.#event(writer, event, eventAttributes);
    writer.uint(SPAN_REST.droppedEvents, events.length - keptEvents.length);
    const linked = links.flatMap((link) => spanReferenceIn(link) ?? []);
    const keptLinks = linked.slice(0, mostLinks ?? DEFAULT_COUNT_LIMIT);
    for (const link of keptLinks) writeLink(writer, link);
    writer.uint(SPAN_REST.droppedLinks, linked.length - keptLinks.length);
    const status = writer.begin(SPAN_REST.status);
    writer.uint(3, errorType === null ? STATUS.unset : STATUS.error);
    writer.end(status);
    writer.fixed32(SPAN_REST.flags, FLAGS | (isSampled ? 1 : 0));
    writer.end(start);
  }

  #event(writer: ProtobufWriter, { name, atMs, attributes = {} }: SpanEvent, most: number | null): void {
    const start = writer.begin(SPAN.events);
    writeInstant(writer, 1, atMs);
    writer.text(2, cut(name, MAX_TEXT_CHARS));
    writer.uint(4, this.#attributes(writer, 3, attributes, most));
    writer.end(start);
  }

  /** @returns how many were left out */
  #attributes(writer: ProtobufWriter, field: number, attributes: Attributes, mostGiven: number | null): number {
    const most = mostGiven ?? DEFAULT_COUNT_LIMIT;
    let count = 0;
    for (const name of Object.keys(attributes)) {
      const value = attributes[name];
      if (value === undefined) continue;
      count += 1;
      if (count <= most) this.#attribute(writer, field, name, value);
    }
    return Math.max(0, count - most);
  }

  #attribute(writer: ProtobufWriter, field: number, name: string, value: NonNullable<Attributes[string]>): void {
    const { bytes, mostChars } = this.#names.get(name) ?? this.#encodeName(name);
    const start = writer.begin(field);
    writer.raw(bytes);
    const valueStart = writer.begin(2);
    writeValue(writer, value, mostChars);
    writer.end(valueStart);
    writer.end(start);
  }

  #encodeName(name: string): Name {
    const writer = new ProtobufWriter();
    writer.text(1, name);
    const encoded = { bytes: Uint8Array.from(writer.written), mostChars: Math.min(mostCharsOf(name), this.#limits.valueChars ?? Number.POSITIVE_INFINITY) };
    if (this.#names.size < MAX_KNOWN_NAMES) this.#names.set(name, encoded);
    return encoded;
  }
}

/** The field `resource` of `ResourceSpans`. */
function encodedResource(attributes: Readonly<Record<string, string | number>>): Uint8Array {
  const writer = new ProtobufWriter();
  const start = writer.begin(1);
  for (const [name, value] of Object.entries(attributes)) {
    const attribute = writer.begin(1);
    writer.text(1, name);
    const valueStart = writer.begin(2);
    writeValue(writer, value, Number.POSITIVE_INFINITY);
    writer.end(valueStart);
    writer.end(attribute);
  }
  writer.uint(2, 0);
  writer.end(start);
  return Uint8Array.from(writer.written);
}

/** `AnyValue`. */
function writeValue(writer: ProtobufWriter, value: NonNullable<Attributes[string]>, mostChars: number): void {
  if (typeof value === 'string') writer.text(1, cut(value, mostChars));
  else if (typeof value === 'boolean') writer.uint(2, value ? 1 : 0);
  else if (typeof value === 'number') {
    if (Number.isInteger(value) && value >= -TWO_63 && value < TWO_63) writer.int64(3, value);
    else writer.double(4, value);
  } else {
    const array = writer.begin(5);
    for (const text of value) {
      const start = writer.begin(1);
      writer.text(1, cut(text, mostChars));
      writer.end(start);
    }
    writer.end(array);
  }
}

function writeLink(writer: ProtobufWriter, { traceId, spanId, isSampled }: SpanReference): void {
  const start = writer.begin(SPAN_REST.links);
  writer.hex(1, traceId);
  writer.hex(2, spanId);
  writer.uint(5, 0);
  writer.fixed32(6, FLAGS | (isSampled ? 1 : 0));
  writer.end(start);
}

/** Nanoseconds exceed what a number has exactly: the seconds are multiplied in two parts. */
function writeInstant(writer: ProtobufWriter, field: number, ms: number): void {
  const seconds = Math.floor(ms / 1_000);
  const nanos = Math.floor((ms - seconds * 1_000) * NANOS_PER_MS);
  const upper = Math.floor(seconds / TWO_16) * NANOS_PER_SECOND;
  const lower = (seconds % TWO_16) * NANOS_PER_SECOND + nanos;
  const low = (upper % TWO_16) * TWO_16 + lower;
  writer.fixed64(field, low % TWO_32, Math.floor(upper / TWO_16) + Math.floor(low / TWO_32));
}
