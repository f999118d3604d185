import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** A span as a collector decodes it. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  /** Empty for the root of a trace. */
  parentSpanId: string;
  name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number;
  startNanos: bigint;
  endNanos: bigint;
  attributes: Record<string, string | number | boolean | string[]>;
  /** Span ids. */
  links: string[];
  /** With their times in nanoseconds. */
  events: { name: string; atNanos: bigint; attributes: ReceivedSpan['attributes'] }[];
  /** Dropped by a limit. */
  droppedAttributes: number;
  /** 0 unset, 2 error. */
  status: number;
  scope: string;
  schemaUrl: string;
  resource: Record<string, string | number | boolean | string[]>;
}

export interface OtlpSink {
  /** Without the path of the signal, as OTEL_EXPORTER_OTLP_ENDPOINT names it. */
  url: string;
  spans: ReceivedSpan[];
  /** Headers of each post, in order. */
  posts: { url: string; headers: IncomingHttpHeaders; body: Buffer }[];
  /** Its next responses; null for no response. */
  answer(status: number | null): void;
  close(): Promise<void>;
}

/** PEM texts of a collector over TLS, which accepts only clients with a certificate by `ca`. */
interface SinkTls {
  cert: string;
  key: string;
  ca: string;
}

/** A collector on this machine: accepts OTLP over HTTP, protobuf, and records all of it. @param tls absent: without TLS */
export async function openOtlpSink(tls?: SinkTls): Promise<OtlpSink> {
  const spans: ReceivedSpan[] = [];
  const posts: OtlpSink['posts'] = [];
  let status: number | null = 200;
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const sent = Buffer.concat(chunks);
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
      posts.push({ url: request.url ?? '', headers: request.headers, body });
      if (status === 200 && request.headers['content-type'] === 'application/x-protobuf') spans.push(...spansIn(body));
      if (status !== null) response.writeHead(status, { 'content-type': 'application/x-protobuf' }).end();
    });
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: true }, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    spans,
    posts,
    answer: (next) => {
      status = next;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A field of a protobuf message: its number, and its bytes or its number. */
type Field = { number: number; bytes: Buffer; value: bigint };

function* fieldsOf(message: Buffer): Generator<Field> {
  let index = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[index];
      if (byte === undefined) throw new Error('a protobuf message ends in the middle of a number');
      index += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (size: number) => {
    if (index + size > message.length) throw new Error('a protobuf message ends in the middle of a field');
    index += size;
    return message.subarray(index - size, index);
  };
  while (index < message.length) {
    const tag = Number(varint());
    const number = tag >> 3;
    const none = Buffer.alloc(0);
    if ((tag & 7) === 0) yield { number, bytes: none, value: varint() };
    else if ((tag & 7) === 1) yield { number, bytes: none, value: take(8).readBigUInt64LE() };
    else if ((tag & 7) === 2) yield { number, bytes: take(Number(varint())), value: 0n };
    else if ((tag & 7) === 5) yield { number, bytes: none, value: BigInt(take(4).readUInt32LE()) };
    else throw new Error(`a protobuf field has the wire type ${tag & 7}`);
  }
}

const all = (message: Buffer, number: number) => [...fieldsOf(message)].filter((field) => field.number === number);
const first = (message: Buffer, number: number) => all(message, number)[0];
const text = (message: Buffer, number: number) => first(message, number)?.bytes.toString('utf8') ?? '';
const hex = (message: Buffer, number: number) => first(message, number)?.bytes.toString('hex') ?? '';

/** ExportTraceServiceRequest: resource spans (1), of which each has a resource (1) and scope spans (2), of which each has a scope (1), spans (2) and a schema (3). */
export function spansIn(request: Buffer): ReceivedSpan[] {
  return all(request, 1).flatMap(({ bytes: ofResource }) => {
    const resource = attributesIn(first(ofResource, 1)?.bytes ?? Buffer.alloc(0), 1);
    return all(ofResource, 2).flatMap(({ bytes: ofScope }) => {
      const scope = text(first(ofScope, 1)?.bytes ?? Buffer.alloc(0), 1);
      return all(ofScope, 2).map(({ bytes }) => ({ ...spanIn(bytes), scope, schemaUrl: text(ofScope, 3), resource }));
    });
  });
}

function spanIn(span: Buffer): Omit<ReceivedSpan, 'scope' | 'schemaUrl' | 'resource'> {
  return {
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    parentSpanId: hex(span, 4),
    name: text(span, 5),
    kind: Number(first(span, 6)?.value ?? 0n),
    startNanos: first(span, 7)?.value ?? 0n,
    endNanos: first(span, 8)?.value ?? 0n,
    attributes: attributesIn(span, 9),
    events: all(span, 11).map(({ bytes }) => ({ name: text(bytes, 2), atNanos: first(bytes, 1)?.value ?? 0n, attributes: attributesIn(bytes, 3) })),
    droppedAttributes: Number(first(span, 10)?.value ?? 0n),
    links: all(span, 13).map(({ bytes }) => hex(bytes, 2)),
    status: Number(first(first(span, 15)?.bytes ?? Buffer.alloc(0), 3)?.value ?? 0n),
  };
}

/** KeyValue: a key (1) and a value (2), which is a text (1), a flag (2), an integer (3), a double (4, as its bits) or a list (5). */
function attributesIn(message: Buffer, number: number): ReceivedSpan['attributes'] {
  return Object.fromEntries(all(message, number).map(({ bytes }) => [text(bytes, 1), valueIn(first(bytes, 2)?.bytes ?? Buffer.alloc(0))]));
}

function valueIn(value: Buffer): string | number | boolean | string[] {
  const [field] = [...fieldsOf(value)];
  switch (field?.number) {
    case 1:
      return field.bytes.toString('utf8');
    case 2:
      return field.value === 1n;
    case 3:
      return Number(field.value);
    case 4: {
      const bits = Buffer.alloc(8);
      bits.writeBigUInt64LE(field.value);
      return bits.readDoubleLE();
    }
    case 5:
      return all(field.bytes, 1).map(({ bytes }) => String(valueIn(bytes)));
    default:
      return '';
  }
}
