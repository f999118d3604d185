import { createServer, type IncomingHttpHeaders, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type ReceivedSpan, spansIn } from './otlp-sink.ts';

/** One byte for the compression flag, and four of the length (gRPC over HTTP/2, Length-Prefixed-Message). */
const PREFIX_BYTES = 5;

interface OtlpGrpcSink {
  url: string;
  spans: ReceivedSpan[];
  posts: { path: string; headers: IncomingHttpHeaders }[];
  close(): Promise<void>;
}

/** A collector on this machine that accepts OTLP over gRPC, without compression. */
export async function openOtlpGrpcSink(): Promise<OtlpGrpcSink> {
  const spans: ReceivedSpan[] = [];
  const posts: OtlpGrpcSink['posts'] = [];
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      posts.push({ path: headers[':path'] ?? '', headers });
      spans.push(...spansIn(Buffer.concat(chunks).subarray(PREFIX_BYTES)));
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      // A response message without fields.
      stream.end(Buffer.alloc(PREFIX_BYTES));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    posts,
    close: async () => {
      for (const session of sessions) session.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
