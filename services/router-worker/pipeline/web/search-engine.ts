import { z } from 'zod';
import { cleanText } from '#shared/clean-text.ts';
import type { WebSearchSettings } from '#shared/config/plugin-settings.ts';
import type { SearchLimit } from '#shared/contracts/router/search-limits.ts';
import { nanoOfUsd } from '#shared/credit/nano-usd.ts';
import { type AskedSearch, MAX_RESULT_CHARS } from '#shared/credit/web-searches.ts';
import type { CallSignal } from '../../call-signal.ts';
import { type EngineDeps, engineHeaders, openEngineClient, unavailable } from '../engine-client.ts';
import { valueAt, withValueAt } from '../field-path.ts';

const MAX_TITLE_CHARS = 200;
const MAX_URL_CHARS = 2_048;

/** A page that a search has found. Its texts are of strangers, and cleaned. */
export interface SearchResult {
  /** http or https. */
  url: string;
  title: string;
  content: string;
}

export interface SearchEngine {
  /** As requests name it. */
  readonly name: string;
  /** Of one search, in billionths of a US dollar. */
  readonly priceNano: number;
  readonly takes: readonly SearchLimit[];
  /** @param asked with limits that it takes @returns at most so many; empty: nothing was found @throws `router.plugin_unavailable`; the signal's reason after an abort */
  search(query: string, asked: Pick<AskedSearch, 'maxResults' | 'limits'>, signal: CallSignal): Promise<SearchResult[]>;
}

export interface OpenedSearchEngine extends SearchEngine {
  close(): Promise<void>;
}

const LIMITS: readonly SearchLimit[] = ['include_domains', 'exclude_domains', 'user_location'];
const found = z.array(z.unknown());
const text = z.string().catch('');

/** A web search over HTTP: one POST of JSON, whose fields the settings name. */
export function openSearchEngine(settings: WebSearchSettings, deps: EngineDeps): OpenedSearchEngine {
  const { name, url, max_query_chars: maxQueryChars, request, response } = settings;
  const client = openEngineClient({ name, url, headers: engineHeaders(settings, deps), timeoutMs: settings.timeout_ms }, deps);
  return {
    name,
    priceNano: nanoOfUsd(Number(settings.price)),
    takes: LIMITS.filter((limit) => request[limit] !== undefined),
    async search(query, { maxResults, limits }, signal) {
      let body = withValueAt(request.also, request.query, query.slice(0, maxQueryChars));
      body = withValueAt(body, request.max_results, maxResults);
      for (const limit of LIMITS) {
        const path = request[limit];
        if (path !== undefined && limits[limit] !== undefined) body = withValueAt(body, path, limits[limit]);
      }
      const answer = await client.post(body, signal);
      const { data } = found.safeParse(valueAt(answer, response.results));
      if (data === undefined) throw unavailable(name, `its answer has no list "${response.results}"`);
      return data.flatMap((item) => resultOf(item, response) ?? []).slice(0, maxResults);
    },
    close: () => client.close(),
  };
}

/** Null: one without an address of the web. */
function resultOf(item: unknown, fields: WebSearchSettings['response']): SearchResult | null {
  const url = text.parse(valueAt(item, fields.url)).trim();
  if (url.length > MAX_URL_CHARS || !URL.canParse(url)) return null;
  const { href, protocol, host } = new URL(url);
  if (protocol !== 'https:' && protocol !== 'http:') return null;
  const title = cleanText(text.parse(valueAt(item, fields.title))).trim();
  const content = cleanText(text.parse(valueAt(item, fields.content))).trim();
  return { url: href, title: title === '' ? host : title.slice(0, MAX_TITLE_CHARS), content: content.slice(0, MAX_RESULT_CHARS) };
}
