import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify';
import secureParse from 'secure-json-parse';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { noteText } from '../lifecycle/heap.ts';
import type { FailBody } from './arriving-bodies.ts';
import { type JsonBounds, type JsonExcess, jsonExcess } from './json-bounds.ts';
import { markRequest } from './mark-requests.ts';
import { readBody } from './read-body.ts';

export interface JsonBodyRules {
  limitBytes: number;
  /** Counts arriving bytes. @throws when there is no capacity for them */
  grew(request: FastifyRequest, bytes: number): void;
  /** As in `readBody`. */
  reading?(request: FastifyRequest, fail: FailBody): (() => void) | undefined;
  /** Runs `handle` at once, or later for a large body; absent: at once. */
  schedule?(sizeBytes: number, handle: () => void): void;
  /** Whether an empty body counts as none; else it is invalid JSON. */
  mayBeEmpty: boolean;
  /** Called with the body before it is parsed, without its byte order mark. */
  onBody?(request: FastifyRequest, body: Buffer): void;
  /** Refuses a large body beyond bounds before it is parsed; absent: none is. What is read of a small one, the route bounds itself. */
  bounded?: BodyBounds;
  /** An error for a value that no route may get; null: none. */
  refuse?(value: unknown, json: string): Error | null;
}

export interface BodyBounds {
  by: JsonBounds;
  /** @param json need not be valid */
  refusal(excess: JsonExcess, json: Buffer): Error;
}

/** The parser's, for a key that would set a prototype. All others are of `JSON.parse`. */
const FORBIDDEN_KEY = 'Object contains forbidden prototype property';

const CHARSET = /;\s*charset\s*=\s*"?([^\s";]*)/i;
/** ASCII is a part of it. */
const UTF_8 = new Set(['utf-8', 'utf8', 'us-ascii', 'ascii', '']);
const WIDE = /^utf-?(?:16|32)/;
const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

/** Reads and parses bodies as JSON, the only type accepted. A body that would set a prototype is refused. */
export function parseJsonBodies(app: FastifyInstance, { limitBytes, grew, reading, schedule, mayBeEmpty, onBody, bounded, refuse }: JsonBodyRules): void {
  readUntypedBodiesAsJson(app);
  app.addContentTypeParser('application/json', (request, payload: Readable, done) => {
    refuseEncodedBody(request.headers);
    const charset = charsetOf(request.headers);
    if (WIDE.test(charset)) throw otherCharset();
    const handle = (body: Buffer) => {
      markRequest(request);
      if (!UTF_8.has(charset) && !isUtf8(body)) return done(otherCharset());
      noteText(body.byteLength);
      if (mayBeEmpty && body.byteLength === 0) return done(null, undefined);
      const json = withoutMark(body);
      // Before its text is made: that of a body with one character beyond Latin-1 takes twice the bytes.
      const excess = bounded === undefined ? null : jsonExcess(json, bounded.by);
      if (bounded !== undefined && excess !== null) return done(bounded.refusal(excess, json));
      onBody?.(request, json);
      const text = json.toString();
      let value: unknown;
      try {
        value = parsed(text);
      } catch (error) {
        return done(faultOf(text, error));
      }
      done(refuse?.(value, text) ?? null, value);
    };
    const counting = { grew: (bytes: number) => grew(request, bytes), reading: (fail: FailBody) => reading?.(request, fail) };
    readBody({ headers: request.headers, payload, limitBytes, ...counting }, (error, body) => {
      if (error !== null) return done(error);
      if (schedule === undefined) handle(body);
      else schedule(body.byteLength, () => handle(body));
    });
  });
}

/** @throws for what is no JSON */
function parsed(text: string): unknown {
  // The parser would drop the second of two, and what was given to `onBody` would still begin with it.
  if (beginsWithMark(text)) throw new SyntaxError('a text of JSON begins with no byte order mark');
  return secureParse(text, { protoAction: 'error', constructorAction: 'error' });
}

/** Told apart by the parser's error: parsing once more would cost as much again. */
function faultOf(text: string, error: unknown): Error {
  if (text === '') return new errorCodes.FST_ERR_CTP_EMPTY_JSON_BODY();
  if (!(error instanceof Error) || error.message !== FORBIDDEN_KEY) return new errorCodes.FST_ERR_CTP_INVALID_JSON_BODY();
  return new SwitchyardError('request.invalid', 'the body has a key that would set a prototype: "__proto__", or "constructor" with a "prototype" in it');
}

/** Of a text made of `withoutMark`: a body had several. It is no JSON. */
export function beginsWithMark(text: string): boolean {
  return text.startsWith('\uFEFF');
}

export function withoutMark(body: Buffer): Buffer {
  return BYTE_ORDER_MARK.every((byte, index) => body[index] === byte) ? body.subarray(BYTE_ORDER_MARK.byteLength) : body;
}

/** Treats a body without Content-Type as JSON. An explicit type still has to match. */
function readUntypedBodiesAsJson(app: FastifyInstance): void {
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    if (headers['content-type'] === undefined && bodyIsAnnounced(headers)) headers['content-type'] = 'application/json';
    done();
  });
}

export function bodyIsAnnounced(headers: IncomingHttpHeaders): boolean {
  const { 'content-length': length, 'transfer-encoding': transfer } = headers;
  return transfer !== undefined || (length !== undefined && length !== '0');
}

/**
 * Refuses compressed bodies: a few kilobytes may expand to gigabytes, and limits count bytes as received.
 * @throws `request.unsupported_media` for any encoding but `identity`
 */
export function refuseEncodedBody(headers: IncomingHttpHeaders): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding.trim().toLowerCase() === 'identity') return;
  throw new SwitchyardError('request.unsupported_media', 'the request has a Content-Encoding: send the body uncompressed, without this header');
}

function charsetOf({ 'content-type': type }: IncomingHttpHeaders): string {
  return (CHARSET.exec(type ?? '')?.[1] ?? '').toLowerCase();
}

/** Bodies are read as UTF-8, whatever `charset` says, as JSON has no such parameter. Text of another encoding would be changed. */
function otherCharset(): SwitchyardError {
  return new SwitchyardError('request.unsupported_media', 'the Content-Type names another charset than UTF-8: send the body as UTF-8');
}
