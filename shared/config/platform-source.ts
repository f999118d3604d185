import { setTimeout as pause } from 'node:timers/promises';
import { type Dispatcher, fetch, type Response } from 'undici';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { failPoint } from '../fail-points.ts';
import type { Outbound } from '../http/outbound.ts';
import type { Queryable } from '../storage/database.ts';
import type { DocumentAddress } from './document-rows.ts';
import { type DocumentSource, noDocuments, type RawDocument } from './document-source.ts';
import { FreeTime } from './free-time.ts';
import { type KeptDocument, PlatformRows } from './platform-rows.ts';
import { readReferenced } from './referenced-documents.ts';

/** Of all documents. A start that fails ends within 10 s. */
const FETCH_MS = 8_000;
/** Beside the start of the process and the end of it. */
const PROCESS_MS = 9_000;
/** Also where the process took long to get here. */
const LEAST_FETCH_MS = 7_000;
/** For a platform that does not answer while its documents are kept here. */
const KEPT_WAIT_MS = 2_000;
/** For the database, whose tags spare bodies. A platform is asked without them where the database takes longer to open: its time runs anyway. */
const TAGS_WAIT_MS = 1_500;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 1_000;
const CONNECTIONS = 16;
/** As of a file in a folder of documents. */
const MAX_BYTES = 1_048_576;

export interface PlatformSourceOptions {
  /** Without a slash at its end. */
  baseUrl: string;
  publicKey: string;
  secretKey: string;
  /** Where documents are kept; null: nowhere. */
  database: (() => Promise<Queryable>) | null;
  outbound: Outbound;
  /** Of all documents; absent: 8 s, and less where the process has taken longer to start. */
  limitMs?: number;
  keptWaitMs?: number;
}

const LATE = 'no answer in time';

type Answer = { status: 200; kept: KeptDocument } | { status: 304 | 404 } | { status: 'again'; why: string };

/**
 * The documents of another platform, kept here as they are fetched: a start that finds all of them here does without the platform. It is asked first, with the
 * tags of what is kept, and beside the opening of the database: so a start that cannot succeed fails in the time of the longer of the two.
 */
export function platformSource(options: PlatformSourceOptions): DocumentSource {
  const { baseUrl, database, outbound, limitMs, keptWaitMs = KEPT_WAIT_MS } = options;
  return {
    async read(outline) {
      if (outline === null) return { documents: noDocuments, problems: [], warnings: [] };
      const allMs = limitMs ?? Math.min(FETCH_MS, Math.max(LEAST_FETCH_MS, PROCESS_MS - performance.now()));
      const freeTime = new FreeTime();
      const rows = database === null ? null : openRows(database, baseUrl);
      const dispatcher = outbound.openDispatcher({ connectTimeoutMs: allMs, maxConnections: CONNECTIONS });
      const fetching = new Fetching({ options, rows, dispatcher, freeTime, allMs, keptMs: Math.min(keptWaitMs, allMs) });
      try {
        const documents = await readReferenced(outline, (address) => fetching.read(address)); // no fail point: inside
        return { documents, problems: [], warnings: fetching.warnings() };
      } finally {
        freeTime.stop();
        fetching.stop();
        await dispatcher.destroy(); // no fail point: stops
      }
    },
  };
}

/** A failure is for those that wait for it. */
function openRows(database: () => Promise<Queryable>, baseUrl: string): Promise<PlatformRows> {
  const rows = database().then((opened) => new PlatformRows(opened, baseUrl)); // no fail point: waits
  rows.catch(() => {});
  return rows;
}

interface FetchingDeps {
  options: PlatformSourceOptions;
  /** Null: nothing is kept. */
  rows: Promise<PlatformRows> | null;
  dispatcher: Dispatcher;
  freeTime: FreeTime;
  /** How long the platform is waited for, of free time. */
  allMs: number;
  /** The same for a document that is kept. */
  keptMs: number;
}

/** The documents of one start. */
class Fetching {
  readonly #deps: FetchingDeps;
  readonly #stopped = new AbortController();
  /** Of a platform that was not waited for. */
  #away: string | null = null;

  constructor(deps: FetchingDeps) {
    this.#deps = deps;
  }

  stop(): void {
    this.#stopped.abort();
  }

  warnings(): string[] {
    if (this.#away === null) return [];
    return [`the platform at ${this.#deps.options.baseUrl} does not answer (${this.#away}): documents that were fetched before are used`];
  }

  /**
   * @throws `config.invalid` where the platform refuses or has no such document, `service.unreachable` where it does not answer and none is kept, and as the
   * database does
   */
  async read(address: DocumentAddress): Promise<RawDocument> {
    const url = this.#urlOf(address);
    const lookup = this.#keptOf(address);
    const late = this.#lateAfter(lookup);
    try {
      const tagged = await this.#soon(lookup); // no fail point: reads
      if (tagged !== null && this.#away !== null) return rawOf(url, tagged.body);
      const { answer, why } = await this.#answerOf(url, tagged, late.signal); // no fail point: requests
      const kept = await lookup; // no fail point: reads
      if (answer !== null) {
        if (answer.body !== kept?.body || answer.etag !== kept.etag) {
          const rows = await this.#deps.rows; // no fail point: waits
          await rows?.keep(address, answer);
          failPoint('document.kept');
        }
        return rawOf(url, answer.body);
      }
      if (kept === null) throw this.#unreachable(url, why);
      this.#away = why;
      return rawOf(url, kept.body);
    } finally {
      late.stop();
    }
  }

  /** Null: it was not fetched before. */
  async #keptOf(address: DocumentAddress): Promise<KeptDocument | null> {
    const rows = await this.#deps.rows; // no fail point: waits
    return (await rows?.read(address)) ?? null; // no fail point: reads
  }

  /** What is kept, if the database says it soon. */
  async #soon(lookup: Promise<KeptDocument | null>): Promise<KeptDocument | null> {
    const waited = new AbortController();
    const pausing = pause(TAGS_WAIT_MS, null, { signal: waited.signal }).catch(() => null);
    try {
      return await Promise.race([lookup, pausing]); // no fail point: reads
    } finally {
      waited.abort();
    }
  }

  /** Ends the wait for the platform: by what the database keeps, and no earlier than the database itself. */
  #lateAfter(lookup: Promise<KeptDocument | null>): { signal: AbortSignal; stop(): void } {
    const late = new AbortController();
    const { freeTime, allMs, keptMs } = this.#deps;
    const endAfter = (kept: KeptDocument | null) => freeTime.onceAfter(kept === null ? allMs : keptMs, () => late.abort());
    lookup.then(endAfter, () => late.abort()); // no fail point: reads
    return { signal: AbortSignal.any([late.signal, this.#stopped.signal]), stop: () => late.abort() };
  }

  /** Asks until the platform answers or the signal ends the wait; then `answer` is null, and `why` says what was wrong. */
  async #answerOf(url: string, kept: KeptDocument | null, signal: AbortSignal): Promise<{ answer: KeptDocument | null; why: string }> {
    let why = '';
    for (let retryMs = FIRST_RETRY_MS; !signal.aborted; retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS)) {
      const answer = await this.#ask(url, kept, signal); // no fail point: requests
      if (answer.status === 404) throw new SwitchyardError('config.invalid', `${url}: the platform has no such document (404)`);
      if (answer.status === 304 && kept !== null) return { answer: kept, why };
      if (answer.status === 200) return { answer: answer.kept, why };
      // The last try is cut off: what the platform said before says more.
      if (answer.status === 'again' && (answer.why !== LATE || why === '')) why = answer.why;
      await pause(retryMs, null, { signal }).catch(() => null); // no fail point: pauses
    }
    return { answer: null, why: why || LATE };
  }

  #unreachable(url: string, why: string): SwitchyardError {
    const seconds = Math.round(this.#deps.allMs / 1_000);
    return new SwitchyardError(
      'service.unreachable',
      `${url}: the platform does not answer within ${seconds} s (${why}), and the document was not fetched before`,
    );
  }

  #urlOf({ kind, id, version }: DocumentAddress): string {
    return `${this.#deps.options.baseUrl}/api/v1/platform/${kind}/${id}/versions/${version}`;
  }

  async #ask(url: string, kept: KeptDocument | null, signal: AbortSignal): Promise<Answer> {
    const { dispatcher, options } = this.#deps;
    const credential = Buffer.from(`${options.publicKey}:${options.secretKey}`).toString('base64');
    const headers: Record<string, string> = { authorization: `Basic ${credential}`, accept: 'application/json' };
    if (kept?.etag != null) headers['if-none-match'] = kept.etag;
    try {
      const response = await fetch(url, { headers, signal, redirect: 'manual', dispatcher }); // no fail point: requests
      const { status } = response;
      if (status === 200) return { status, kept: { body: await boundedText(url, response), etag: response.headers.get('etag') } }; // no fail point: requests
      await response.body?.cancel(); // no fail point: stops
      if (status === 304 || status === 404) return { status };
      if (status >= 500 || status === 429) return { status: 'again', why: `it answers ${status}` };
      throw refusal(url, status);
    } catch (error) {
      if (error instanceof SwitchyardError) throw error;
      return { status: 'again', why: signal.aborted ? LATE : reasonOf(error) };
    }
  }
}

function refusal(url: string, status: number): SwitchyardError {
  const why =
    status === 401 || status === 403 ? 'the platform does not accept platform.public_key and platform.secret_key' : 'the platform refuses the request';
  return new SwitchyardError('config.invalid', `${url}: ${why} (${status})`);
}

/** The text as it came: it is checked as a document like any other. */
function rawOf(file: string, body: string): RawDocument {
  try {
    return { file, value: JSON.parse(body), problems: [] };
  } catch {
    return { file, value: null, problems: ['is not JSON'] };
  }
}

async function boundedText(url: string, { body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // no fail point: requests
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new SwitchyardError('config.invalid', `${url}: the document is larger than ${MAX_BYTES / 1_048_576} MiB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** fetch's own message is generic; its cause has the reason. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : null;
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return error instanceof Error ? error.message : String(error);
}
