import type { Dispatcher } from 'undici';
import { type GuardedRequestsOptions, openGuardedRequests, outboundFailure } from './guarded-requests.ts';

/** One attempt, from the DNS lookup to the end of the body. */
const GET_TIMEOUT_MS = 10_000;
const MAX_BYTES = 20 * 1024 * 1024;
const OK = 200;

/** One GET of a file from a URL that a caller chose. */
export interface GuardedGet {
  url: string;
  /** Of the answer, in lower case, without parameters. */
  mediaTypes: ReadonlySet<string>;
  /** Default 20 MiB. */
  maxBytes?: number;
  /** For the whole attempt; default 10 seconds. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

interface FetchedFile {
  mediaType: string;
  bytes: Buffer;
}

/** Fetches files from URLs of callers, guarded against SSRF. */
export interface GuardedGetter {
  /** @throws as `GuardedRequests.send`, and `outbound.failed` with the reason `status` (a redirect is not followed), `type_not_allowed` or `too_large` */
  get(request: GuardedGet): Promise<FetchedFile>;
  /** Ends all attempts in flight with `outbound.failed`, and waits for their end. */
  close(): Promise<void>;
}

export function openGuardedGetter(options: GuardedRequestsOptions): GuardedGetter {
  const requests = openGuardedRequests(options);
  return {
    get: ({ url, mediaTypes, maxBytes = MAX_BYTES, timeoutMs = GET_TIMEOUT_MS, signal: caller }) =>
      requests.send({ url, hostAllowlist: null, timeoutMs, signal: caller }, async (client, path, signal) => {
        // Without an encoding the bytes are those of the file, and the limit is one of memory.
        const headers = { accept: [...mediaTypes].join(', '), 'accept-encoding': 'identity', 'user-agent': 'switchyard' };
        const response = await client.request({ method: 'GET', path, headers, reset: true, signal });
        // A body that is not read breaks with its connection.
        response.body.on('error', () => {});
        const target = new URL(url);
        if (response.statusCode !== OK) throw outboundFailure(target, 'status');
        const mediaType = textOf(response.headers['content-type']).split(';')[0]?.trim().toLowerCase() ?? '';
        const encoding = textOf(response.headers['content-encoding']);
        if (!mediaTypes.has(mediaType) || (encoding !== '' && encoding !== 'identity')) throw outboundFailure(target, 'type_not_allowed');
        const bytes = Number(response.headers['content-length'] ?? 0) > maxBytes ? null : await bytesOf(response.body, maxBytes);
        if (bytes === null) throw outboundFailure(target, 'too_large');
        return { mediaType, bytes };
      }),
    close: () => requests.close(),
  };
}

/** Null: there are more. */
async function bytesOf(body: Dispatcher.ResponseData['body'], maxBytes: number): Promise<Buffer | null> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of body) {
    pieces.push(piece);
    length += piece.length;
    if (length > maxBytes) return null;
  }
  return Buffer.concat(pieces);
}

function textOf(header: string | string[] | undefined): string {
  return [header].flat()[0] ?? '';
}
