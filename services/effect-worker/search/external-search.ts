import { type Dispatcher, fetch } from 'undici';
import { z } from 'zod';
import type { FoundDocument } from '#bus/messages/found-document.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { jsonIn } from '#shared/json-in.ts';
import { SearchFailure } from './search-failure.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** Per service. */
const MAX_CONNECTIONS = 32;
/** Of a response; more than a prompt can use many times over. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

const found = z.object({
  content: z.string().refine((text) => text.trim() !== ''),
  title: z.string().nullish().catch(null),
  url: z.string().nullish().catch(null),
});
const response = z.union([z.object({ results: z.array(z.unknown()) }), z.array(z.unknown())]);

/** What a search service is sent. */
interface SearchBody {
  query: string;
  top_k: number;
  messages: readonly { role: string; text: string; created_at: string }[];
  session_id: string;
  customer_id: string | null;
  metadata: Record<string, unknown>;
}

interface SearchCall {
  url: string;
  bearer: string | null;
  body: SearchBody;
  signal: AbortSignal;
}

/** Services of the configuration: through its proxies, and no redirect is followed. */
export class ExternalSearches {
  readonly #connections: Dispatcher;

  constructor({ environment }: { environment: Environment }) {
    this.#connections = openOutbound(environment).openDispatcher({ connectTimeoutMs: CONNECT_TIMEOUT_MS, maxConnections: MAX_CONNECTIONS });
  }

  /**
   * In the order of the service. Results without a text are left out.
   * @throws SearchFailure, or the reason of the signal
   */
  async search({ url, bearer, body, signal: given }: SearchCall): Promise<FoundDocument[]> {
    // A signal of its own: on Node 20 fetch refuses one whose listeners are not limited, as those of items.
    const signal = AbortSignal.any([given]);
    const headers = { 'content-type': 'application/json', accept: 'application/json', ...(bearer !== null && { authorization: `Bearer ${bearer}` }) };
    const request = { method: 'POST', headers, body: JSON.stringify(body), redirect: 'manual' as const, dispatcher: this.#connections, signal };
    const answer = await fetch(url, request).catch((cause: unknown) => unreachable(cause, signal));
    if (!answer.ok) {
      await answer.body?.cancel().catch(() => {});
      throw new SearchFailure(reasonOf(answer.status), `the search service answered ${answer.status}`);
    }
    const text = await textOf(answer).catch((cause: unknown) => unreachable(cause, signal));
    const read = response.safeParse(jsonIn(text));
    if (!read.success) throw new SearchFailure('refused', 'the answer of the search service is not {"results": […]}');
    const results = Array.isArray(read.data) ? read.data : read.data.results;
    return results.flatMap((result) => {
      const { success, data } = found.safeParse(result);
      return success ? [{ content: data.content, title: data.title ?? null, url: data.url ?? null }] : [];
    });
  }

  close(): Promise<void> {
    return this.#connections.destroy();
  }
}

function unreachable(cause: unknown, signal: AbortSignal): never {
  signal.throwIfAborted();
  throw cause instanceof SearchFailure ? cause : new SearchFailure('unreachable', "the search service can't be reached", { cause });
}

function reasonOf(status: number): SearchFailure['reason'] {
  if (status === 401 || status === 403) return 'auth_failed';
  return status === 429 || status >= 500 ? 'unreachable' : 'refused';
}

async function textOf(answer: Awaited<ReturnType<typeof fetch>>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer.body ?? []) {
    bytes += piece.byteLength;
    if (bytes > MAX_RESPONSE_BYTES) throw new SearchFailure('refused', `the answer of the search service has more than ${MAX_RESPONSE_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
