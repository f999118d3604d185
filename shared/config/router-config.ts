import { z } from 'zod';
import { SECRET_REF } from '../contracts/manifest/secret-ref.ts';
import { plugin } from '../contracts/router/chat-request.ts';
import { embeddingLimits } from '../contracts/router/embedding-request.ts';
import { failureEvents } from '../contracts/router/response-object.ts';
import { MAX_LIMIT_USD } from '../credit/nano-usd.ts';
import { hashInReference } from '../keys/key-reference.ts';
import { pluginSettings } from './plugin-settings.ts';

/**
 * The router's configuration: a YAML or JSON file. Prices are USD per million tokens, as decimal strings for precision. Times are in
 * milliseconds.
 */
const keyId = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'must be lower-case letters, digits, ".", "_" or "-"');
/** Of a provider, or of one endpoint of it. Its parts go from the general to the special: `google-vertex/us-east5`. */
const slug = z
  .string()
  .regex(/^(?=.{1,64}$)[a-z0-9][a-z0-9._-]*(\/[a-z0-9][a-z0-9._-]*)*$/, 'must be lower-case letters, digits, ".", "_" or "-", with "/" between its parts');
const price = z.string().regex(/^\d{1,9}(\.\d{1,9})?$/, 'must be a decimal like "0.15"');
/** Per minute or at once; more is no limit. */
const rate = z.number().int().min(1).max(1_000_000_000);
/** Slugs of one list. */
const MAX_RULES = 1_000;
const MAX_DEFAULT_PLUGINS = 32;
const LIMIT_EXPECTED = `must be US dollars as a decimal like "5.00", at most ${MAX_LIMIT_USD}`;
const KEY_EXPECTED =
  'must be a reference like ${VAR_NAME}, or sha256: and the 64 hex digits, in lower case, of the SHA-256 of the key; literal credentials are not accepted';
/** As browsers write it: lower-case, without the port that the scheme implies. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/(?:[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[1-9]\d{0,4})?$/;
const IMPLIED_PORT = /^(?:https:.*:443|http:.*:80)$/;
const ORIGIN_EXPECTED =
  'must be an origin as browsers send it, like https://app.example.com or http://localhost:3000: lower-case, without a path or an implied port';
const origin = z.string().refine((text) => ORIGIN.test(text) && !IMPLIED_PORT.test(text), ORIGIN_EXPECTED);
/** Of one file. Gateways and workers keep several configurations, and all that they have of each is in memory. */
export const routerConfigLimits = {
  providers: 1_000,
  models: 10_000,
  /** Of one model. */
  aliases: 100,
  /** Of one model. */
  categories: 32,
  /** Of one model. */
  endpoints: 100,
  /** Of all models. */
  allEndpoints: 50_000,
  /** Of one endpoint. */
  parameters: 500,
  keys: 10_000,
};

const milliseconds = z.number().int().min(1).max(3_600_000);

const link = z.url({ protocol: /^https?$/ }).optional();

/** The fields that every provider has. The others belong to its kind, and its dialect in the router worker owns their schema. */
export const providerIdentity = {
  slug,
  name: z.string().min(1).optional(),
  kind: z.string().min(1),
  /** Shown in GET /providers. */
  privacy_policy_url: link,
  terms_of_service_url: link,
  status_page_url: link,
};

const opaqueProvider = z.looseObject(providerIdentity);
export type ProviderConfig = z.infer<typeof opaqueProvider>;

const tokenPrices = {
  prompt: price,
  completion: price,
  cached_prompt: price.optional(),
  cache_write: price.optional(),
  /** Of tokens written to a cache for an hour; absent: `cache_write`. */
  cache_write_1h: price.optional(),
};
const tierPrices = z.strictObject(tokenPrices).optional();

/** USD: per million tokens, per call (`request`), per picture and per recording of the request, per search. Cached prompts cost what others do unless they have a price. */
export const endpointPrices = z.strictObject({
  ...tokenPrices,
  request: price.optional(),
  image: price.optional(),
  audio: price.optional(),
  /** Per search that the provider makes itself. */
  web_search: price.optional(),
  /** Of tokens at another tier (`service_tier`) than the plain one; absent: not known. Other prices are those of the endpoint. */
  tiers: z.strictObject({ flex: tierPrices, priority: tierPrices, scale: tierPrices, fast: tierPrices }).optional(),
});
export type EndpointPrices = z.infer<typeof endpointPrices>;

/** What the catalogue may say of an endpoint. */
export const endpointFacts = {
  prices: endpointPrices.optional(),
  context_length: z.number().int().min(1).optional(),
  max_completion_tokens: z.number().int().min(1).optional(),
  /** Request parameters that the endpoint supports, of those that its provider's kind has; absent: all of these. Others are dropped before the call. */
  supported_parameters: z.array(z.string()).max(routerConfigLimits.parameters).optional(),
  /** Formats of `response_format` beside text; absent: those that `supported_parameters` allow, and `grammar` and `python` where it names them. */
  response_formats: z.array(z.enum(['json_object', 'json_schema', 'grammar', 'python'])).optional(),
  /** False: the model can't search the web, though the API of its provider can. */
  native_search: z.boolean().optional(),
  /** What a request may contain beside text; absent: pictures, recordings and files, and nothing for a model of vectors. */
  modalities: z.array(z.enum(['text', 'image', 'audio', 'video', 'file'])).optional(),
};

const endpoint = z.strictObject({
  provider: slug,
  /** Its own slug, which begins with the provider's: `deepinfra/turbo`. Absent: the provider's. */
  tag: slug.optional(),
  upstream_model: z.string().min(1),
  ...endpointFacts,
  /** Most inputs of one request for vectors; longer lists are sent in several. Absent: what the API of its provider takes. */
  max_inputs: z.number().int().min(1).max(100_000).optional(),
  /** Format of the weights. Absent: not known. */
  quantization: z.enum(['int4', 'int8', 'fp4', 'fp6', 'fp8', 'fp16', 'bf16', 'fp32']).optional(),
  /** Where it is served, such as `eu` or `us`; for lists. Absent: not known. */
  region: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be a name of small letters')
    .optional(),
  /** Medians, for requests that sort by speed or set limits. Absent: not known. */
  speed: z.strictObject({ tokens_per_second: z.number().positive().optional(), first_token_seconds: z.number().positive().optional() }).optional(),
});

/** What the catalogue may say of a model. */
export const modelFacts = {
  name: z.string().min(1).optional(),
  description: z.string().default(''),
  /** Of a model of vectors, which serves POST /embeddings and no chat. Absent: it chats. */
  embeddings: z
    .strictObject({
      /** Of its vectors. Absent: not known, and an answer with vectors of any one length is taken. */
      dimensions: z.number().int().min(1).max(embeddingLimits.dimensions).optional(),
      /** Whether a request may ask for fewer. */
      shortens: z.boolean().default(true),
    })
    .optional(),
};

const model = z.strictObject({
  id: z.string().regex(/^[A-Za-z0-9._-]+\/[A-Za-z0-9._:/-]+$/, 'must be provider/model'),
  ...modelFacts,
  /** Other names for requests; the response has the id. */
  aliases: z.array(z.string().min(1)).max(routerConfigLimits.aliases).default([]),
  /** Whether its author permits training other models on its output. Absent: not known. */
  distillable: z.boolean().optional(),
  /** The day of its release; for lists. Absent: not known. */
  created: z.iso.date().optional(),
  /** What it is good for, such as `programming`; for lists. */
  categories: z
    .array(z.string().regex(/^[a-z][a-z0-9/_-]{0,63}$/, 'must be a name of small letters'))
    .max(routerConfigLimits.categories)
    .optional(),
  /** Whether a second endpoint begins when the first is late with its first token; the faster answers. Both are paid for. Absent: no. */
  hedge: z.boolean().optional(),
  /**
   * In which order requests that state none try the endpoints. `price`, or absent: free ones, then a draw in which cheaper ones are likelier to come first, then those
   * without prices in the file's order. `file`: the file's order. In both, endpoints with an outage come last.
   */
  order: z.enum(['price', 'file']).optional(),
  endpoints: z.array(endpoint).min(1).max(routerConfigLimits.endpoints),
});

/** What requests may use, whatever they ask for. Absent: no rule. */
const accountRules = z.strictObject({
  /** By slug: all others serve no request. Requests can only narrow it. */
  allowed_providers: z.array(slug).min(1).max(MAX_RULES).optional(),
  /** By slug: these serve no request. */
  ignored_providers: z.array(slug).max(MAX_RULES).optional(),
  /** `deny`: only providers that neither train on requests nor retain them. */
  data_collection: z.enum(['allow', 'deny']).optional(),
  /** True: only providers that retain nothing. */
  zdr: z.boolean().optional(),
  /** Of requests that do not name them. No rule: a request may switch one off, `enabled: false`. */
  plugins: z.array(plugin).max(MAX_DEFAULT_PLUGINS).optional(),
});

const key = z.strictObject({
  id: keyId,
  name: z.string().min(1).optional(),
  /** The callers' bearer token, or its SHA-256. */
  key: z.string().refine((text) => SECRET_REF.test(text) || hashInReference(text) !== null, KEY_EXPECTED),
  disabled: z.boolean().default(false),
  /** Reaches the routes of management, and no model. */
  management: z.boolean().default(false),
  /** In US dollars. Absent: none. */
  limit: z
    .string()
    .regex(/^\d{1,7}(\.\d{1,9})?$/, LIMIT_EXPECTED)
    .refine((text) => Number(text) <= MAX_LIMIT_USD, LIMIT_EXPECTED)
    .optional(),
  /** Begin of the window that the limit applies to, in UTC. Absent: all time. */
  limit_reset: z.enum(['daily', 'weekly', 'monthly']).optional(),
  limits: z.strictObject({ requests_per_minute: rate.optional(), tokens_per_minute: rate.optional(), calls_at_once: rate.optional() }).prefault({}),
  /** Narrows the rules of `account`. */
  account: accountRules.optional(),
});

/** @param provider of one entry of `providers` */
export const routerConfigWith = <Provider extends z.ZodType<ProviderConfig>>(provider: Provider) =>
  z.strictObject({
    providers: z.array(provider).min(1).max(routerConfigLimits.providers),
    models: z.array(model).min(1).max(routerConfigLimits.models),
    /** Used when a request names no model. Absent: the first of `models` that chats. */
    default_model: z.string().optional(),
    keys: z.array(key).min(1).max(routerConfigLimits.keys),
    /** Of all keys, also those made over HTTP. */
    account: accountRules.optional(),
    /** Ceiling on the completion tokens of requests that have none, for keys with a credit limit: so much is reserved. */
    default_completion_tokens: z.number().int().min(1).max(10_000_000).default(4_096),
    /** Whether requests may ask for the bodies that upstreams get (`debug.echo_upstream_body`). For development: the echo may show what a provider is asked. */
    debug_echo: z.boolean().default(true),
    /** How streams of /responses end that fail behind content. */
    errors: z.enum(failureEvents).default('response.failed'),
    /** Pages of these origins may send requests; of others, only the gateway's own host. */
    cors: z.strictObject({ origins: z.array(origin).max(1_000).default([]) }).prefault({}),
    /** Engines of the plugins that requests may ask for. */
    plugins: pluginSettings.prefault({}),
    timeouts: z
      .strictObject({
        connect_ms: milliseconds.default(5_000),
        first_token_ms: milliseconds.default(60_000),
        idle_ms: milliseconds.default(30_000),
        total_ms: milliseconds.default(600_000),
      })
      .prefault({}),
  });

/** Reads of a provider its identity alone, as in processes without the dialects. */
export const routerConfig = routerConfigWith(opaqueProvider);

export type RouterConfig = z.infer<typeof routerConfig>;
export type ModelConfig = RouterConfig['models'][number];
export type EndpointConfig = ModelConfig['endpoints'][number];
