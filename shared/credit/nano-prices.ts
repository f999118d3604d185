import type { EndpointConfig } from '../config/router-config.ts';

/** Prices have at most nine decimals; integers keep them exact. */
const PRICE_PLACES = 9;
/** What the prices of tokens are per. */
export const TOKENS_PER_PRICE = 1_000_000n;

type Prices = NonNullable<EndpointConfig['prices']>;

/** Billionths of a US dollar: per million tokens, per call, per picture, per recording and per search of the web. */
export interface NanoPrices {
  prompt: bigint;
  completion: bigint;
  cachedPrompt: bigint;
  cacheWrite: bigint;
  /** Of tokens that are kept for an hour. */
  cacheWrite1h: bigint;
  request: bigint;
  webSearch: bigint;
  /** Null: pictures have no price of their own. */
  image: bigint | null;
  /** Null: recordings have no price of their own. */
  audio: bigint | null;
  /** Whether either has one. */
  hasPieces: boolean;
  /** By the names of tiers that have prices of their own; null: none has. */
  tiers: ReadonlyMap<string, NanoPrices> | null;
}

const known = new WeakMap<Prices, NanoPrices>();

/**
 * Read once per endpoint. Cached prompts cost what the others do unless the endpoint says otherwise, and writes for an hour what other writes do: no price is
 * derived by a factor.
 */
export function nanoPricesOf(prices: Prices): NanoPrices {
  const read = known.get(prices);
  if (read !== undefined) return read;
  const image = prices.image === undefined ? null : toNano(prices.image);
  const audio = prices.audio === undefined ? null : toNano(prices.audio);
  const plain: NanoPrices = {
    ...ofTokens(prices),
    request: toNano(prices.request ?? '0'),
    webSearch: toNano(prices.web_search ?? '0'),
    image,
    audio,
    hasPieces: image !== null || audio !== null,
    tiers: null,
  };
  const tiers = Object.entries(prices.tiers ?? {}).flatMap(([name, own]): [string, NanoPrices][] => (own ? [[name, { ...plain, ...ofTokens(own) }]] : []));
  const nano = tiers.length === 0 ? plain : { ...plain, tiers: new Map(tiers) };
  known.set(prices, nano);
  return nano;
}

function ofTokens(prices: Pick<Prices, 'prompt' | 'completion' | 'cached_prompt' | 'cache_write' | 'cache_write_1h'>) {
  return {
    prompt: toNano(prices.prompt),
    completion: toNano(prices.completion),
    cachedPrompt: toNano(prices.cached_prompt ?? prices.prompt),
    cacheWrite: toNano(prices.cache_write ?? prices.prompt),
    cacheWrite1h: toNano(prices.cache_write_1h ?? prices.cache_write ?? prices.prompt),
  };
}

function toNano(price: string): bigint {
  const [whole = '0', fraction = ''] = price.split('.');
  return BigInt(whole + fraction.slice(0, PRICE_PLACES).padEnd(PRICE_PLACES, '0'));
}
