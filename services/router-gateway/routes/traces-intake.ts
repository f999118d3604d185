import type { Readable } from 'node:stream';
import type { FastifyPluginAsync, FastifyReply } from 'fastify';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { FailBody } from '#shared/http-server/arriving-bodies.ts';
import { readBody } from '#shared/http-server/read-body.ts';
import { type Admission, admitRequests, countedByAdmission } from '../admission.ts';
import type { GatewayLimits } from '../limits.ts';
import { FORWARDED, type TraceForwarder } from '../trace-forwarder.ts';

const PROTOBUF = 'application/x-protobuf';
const JSON_TYPE = 'application/json';
const ENCODINGS = ['gzip', 'identity'];
/** Gateways between a client and the collector, such as its own and a platform's. More indicate a loop. */
const MAX_HOPS = 3;
/** Shorter than 120 bytes: `partialSuccess` encodes its length in one byte. */
const NOT_STORED = 'no collector is configured here: traces are accepted and dropped';

export interface TracesIntakeDeps {
  admission: Admission;
  limits: GatewayLimits;
  /** Null: there is no collector. */
  forwarder: TraceForwarder | null;
}

/**
 * POST /otel/v1/traces: OTLP over HTTP, protobuf or JSON, gzip allowed, forwarded unread. 200: accepted; 503: the queue is full, retry.
 * Without a collector it answers 200 with a warning: exporters retry a 5xx, every one of them for ever, while they log a partial success
 * and do not repeat it.
 */
export function tracesIntake({ admission, limits, forwarder }: TracesIntakeDeps): FastifyPluginAsync {
  return async (app) => {
    admitRequests(app, admission, limits.tracesBytes);
    app.removeAllContentTypeParsers();
    app.addContentTypeParser([PROTOBUF, JSON_TYPE], (request, payload: Readable, done) => {
      const counting = {
        grew: (bytes: number) => countedByAdmission.grew(request, bytes),
        reading: (fail: FailBody) => countedByAdmission.reading(request, fail),
      };
      // A copy: the slice may retain a larger block while it waits for the collector.
      readBody({ headers: request.headers, payload, limitBytes: limits.tracesBytes, ...counting }, (error, body) =>
        error === null ? done(null, Buffer.from(body)) : done(error),
      );
    });

    app.post('/otel/v1/traces', async (request, reply) => {
      const { headers, body } = request;
      if (!Buffer.isBuffer(body)) throw new SwitchyardError('request.invalid', 'There are no traces in the body');
      const hops = Number(headers[FORWARDED] ?? 0);
      if (!(hops < MAX_HOPS))
        throw new SwitchyardError('request.invalid', 'These traces are forwarded in a loop: OTEL_EXPORTER_OTLP_ENDPOINT of a gateway leads back to it');
      const contentEncoding = headers['content-encoding'] ?? null;
      if (contentEncoding !== null && !ENCODINGS.includes(contentEncoding)) {
        throw new SwitchyardError('request.unsupported_media', 'The body has an encoding other than gzip');
      }
      const contentType = headers['content-type']?.startsWith(JSON_TYPE) === true ? JSON_TYPE : PROTOBUF;
      if (forwarder !== null && !forwarder.accept({ body, contentType, contentEncoding, hops })) {
        throw new SwitchyardError('service.overloaded', 'The queue to the collector is full', { details: { retryAfterMs: limits.retryAfterMs } });
      }
      return answer(reply, contentType, forwarder === null ? NOT_STORED : null);
    });
  };
}

/** ExportTraceServiceResponse in the request's format; empty on success. */
function answer(reply: FastifyReply, contentType: string, warning: string | null): FastifyReply {
  reply.code(200).type(contentType);
  if (contentType === JSON_TYPE) return reply.serializer(JSON.stringify).send(warning === null ? {} : { partialSuccess: { errorMessage: warning } });
  return reply.send(warning === null ? Buffer.alloc(0) : partialSuccess(warning));
}

/** Field 1, the partial success, with the message as its field 2. */
function partialSuccess(message: string): Buffer {
  const text = Buffer.from(message, 'utf8');
  return Buffer.concat([Buffer.from([0x0a, text.byteLength + 2, 0x12, text.byteLength]), text]);
}
