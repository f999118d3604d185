import { isDoneWithout, parametersOfKind, sendsParameter, takesOptions } from '#shared/config/kind-parameters.ts';
import type { ModelConfig, RouterConfig } from '#shared/config/router-config.ts';
import type { ChatRequest, chatRequest } from '#shared/contracts/router/chat-request.ts';
import { supportOfPlugin } from '#shared/contracts/router/plugins.ts';
import { isUnpriced } from '#shared/credit/service-tiers.ts';
import { neededParameters } from '#shared/prompts/needed-parameters.ts';
import type { NamedPlugin } from '#shared/surfaces/surface.ts';

/** Proxies refuse responses with more than 4 to 8 KiB of headers. */
const MAX_HEADER_CHARS = 1_024;
const MORE = ', ...';
const MAX_NAME_CHARS = 64;
const PLAIN_NAME = /^[\w$-]{1,64}$/;

/** Response header with the parts of a request that had no effect; a plugin as its place and its id, `plugins[0]=newer-plugin`. */
export const IGNORED_HEADER = 'x-switchyard-ignored';

/**
 * `true`: applied, by the router or an upstream. `false`: accepted and ignored. A function decides by the value. A table has a rule per
 * member; others are unknown.
 */
type Rule = boolean | ((value: unknown) => boolean) | { [name: string]: Rule };

/** A new field of the contract does not compile without a rule. */
const contractRules: Record<Exclude<keyof typeof chatRequest.shape, 'messages' | 'plugins' | 'tools'>, Rule> = {
  model: true,
  models: true,
  provider: {
    allow_fallbacks: true,
    require_parameters: true,
    data_collection: true,
    zdr: true,
    enforce_distillable_text: true,
    order: true,
    only: true,
    ignore: true,
    quantizations: true,
    sort: { by: true, partition: true },
    max_price: { prompt: true, completion: true, image: true, audio: true, request: true },
    preferred_min_throughput: true,
    preferred_max_latency: true,
    min_throughput: true,
    max_latency: true,
  },
  route: true,
  user: true,
  session_id: true,
  frequency_penalty: true,
  presence_penalty: true,
  logit_bias: true,
  logprobs: true,
  top_logprobs: true,
  max_tokens: true,
  max_completion_tokens: true,
  metadata: true,
  reasoning: { effort: true, summary: true, max_tokens: true, exclude: true, enabled: true },
  response_format: true,
  seed: true,
  stop: true,
  stream: true,
  stream_options: true,
  temperature: true,
  top_p: true,
  tool_choice: true,
  parallel_tool_calls: true,
  debug: { echo_upstream_body: true },
  // Reach the upstreams that have them.
  top_k: true,
  min_p: true,
  top_a: true,
  repetition_penalty: true,
  reasoning_effort: true,
  include_reasoning: true,
  verbosity: true,
  prediction: true,
  modalities: true,
  audio: true,
  image_config: true,
  service_tier: true,
  cache_control: true,
  prompt_cache_key: true,
  safety_identifier: true,
  web_search_options: true,
  provider_options: true,
  trace: true,
  transforms: false,
};

/** Outside the contract. */
const otherRules: Record<string, Rule> = {
  functions: true,
  function_call: true,
  // Usage is always included.
  usage: true,
  // One answer per request.
  n: (value) => value === 1,
};

/** A Map, since names are the caller's. */
const rulesWith = (debugEcho: boolean) => new Map<string, Rule>(Object.entries({ ...contractRules, ...otherRules, debug: { echo_upstream_body: debugEcho } }));

/**
 * Builds the header's value for a request: paths of ignored plugins and fields, comma-separated; null when there are none.
 * Unknown parameters are listed although upstreams get them, unless an endpoint declares them as supported: a misspelt one must show.
 * So are parameters that no endpoint of the request's models can be sent.
 */
export function ignoredFields({
  models,
  providers,
  debug_echo: debugEcho,
}: Pick<RouterConfig, 'models' | 'providers' | 'debug_echo'>): (request: ChatRequest, facts?: RequestFacts) => string | null {
  const topLevel = rulesWith(debugEcho);
  const declared = new Set(models.flatMap(({ endpoints }) => endpoints.flatMap(({ supported_parameters: names = [] }) => names)));
  const kindsOf = closedKinds(models, providers);
  const taking = new Set(providers.flatMap(({ slug, kind }) => (takesOptions(kind) ? [slug] : [])));
  return (request, { otherNames = [], asked = [], isReserved = false } = {}) => {
    let paths: HeaderPaths | null = null;
    const name = (path: string) => {
      paths ??= new HeaderPaths();
      return paths.add(path);
    };
    for (const other of otherNames) name(encodedName(other));
    const unsent = unsentParameters(request, asked, kindsOf);
    for (const field in request) {
      const value: unknown = request[field];
      if (value === null || value === undefined) continue;
      if (field === 'messages' || field === 'tools') continue;
      if (field === 'service_tier' && isReserved && hasNoPrice(value, asked)) name(field);
      else if (field === 'provider_options') addIgnoredOptions(request, isReserved ? asked : [], taking, name);
      else if (field === 'plugins') addIgnoredPlugins(request, name);
      else if (unsent?.has(field)) name(encodedName(field));
      else if (!declared.has(field)) addIgnored(encodedName(field), value, topLevel.get(field) ?? false, name);
    }
    return HeaderPaths.valueOf(paths);
  };
}

/** What the header depends on beside the request's fields. */
interface RequestFacts {
  /** Fields of another API that have no counterpart in a chat. */
  otherNames?: readonly string[];
  /** Models that the request names, or the default. */
  asked?: readonly ModelConfig[];
  /** Whether its cost is reserved, as for keys with a credit limit. Absent: no. */
  isReserved?: boolean;
}

/** A tier that no endpoint has a price of: none is asked for it. */
function hasNoPrice(tier: unknown, asked: readonly ModelConfig[]): boolean {
  return asked.length > 0 && asked.every(({ endpoints }) => endpoints.every(({ prices }) => isUnpriced(tier, prices)));
}

/**
 * Options of providers that get none, and tiers in the others that are not asked for.
 * @param asked of a request whose cost is reserved
 * @param taking slugs of providers that get their options
 */
function addIgnoredOptions(
  { provider_options: options }: ChatRequest,
  asked: readonly ModelConfig[],
  taking: ReadonlySet<string>,
  name: (path: string) => boolean,
): void {
  for (const [slug, own] of Object.entries(options ?? {})) {
    if (!taking.has(slug)) {
      if (!name(`provider_options.${encodedName(slug)}`)) return;
      continue;
    }
    const there = asked.flatMap(({ endpoints }) => endpoints.filter(({ provider }) => provider === slug));
    if (there.length === 0 || !there.every(({ prices }) => isUnpriced(own?.service_tier ?? undefined, prices))) continue;
    if (!name(`provider_options.${encodedName(slug)}.service_tier`)) return;
  }
}

/** Of the models whose endpoints are all at providers that take known parameters alone: the kinds of these. */
function closedKinds(models: readonly ModelConfig[], providers: RouterConfig['providers']): ReadonlyMap<ModelConfig, readonly string[]> {
  const kindOf = new Map(providers.map(({ slug, kind }) => [slug, kind]));
  const ofModels = models.map((model): [ModelConfig, string[]] => [model, model.endpoints.map(({ provider }) => kindOf.get(provider) ?? '')]);
  return new Map(ofModels.filter(([, kinds]) => kinds.every((kind) => parametersOfKind(kind) !== null)));
}

/** Null: none, as for most requests. */
function unsentParameters(
  request: ChatRequest,
  asked: readonly ModelConfig[],
  kindsOf: ReadonlyMap<ModelConfig, readonly string[]>,
): ReadonlySet<string> | null {
  if (kindsOf.size === 0 || asked.length === 0 || !asked.every((model) => kindsOf.has(model))) return null;
  const kinds = new Set(asked.flatMap((model) => kindsOf.get(model) ?? []));
  const hasEffect = (name: string) => [...kinds].some((kind) => isDoneWithout(kind, name, request[name]) || sendsParameter(kind, name, request[name]));
  return new Set(neededParameters(request).filter((name) => !hasEffect(name)));
}

/** The header's value for these names of fields and these plugins; null when there are none. */
export function headerOf(names: readonly string[], plugins: readonly NamedPlugin[] = []): string | null {
  if (names.length === 0 && plugins.length === 0) return null;
  const paths = new HeaderPaths();
  for (const name of names) if (!paths.add(encodedName(name))) return HeaderPaths.valueOf(paths);
  for (const plugin of plugins) if (!paths.add(pathOf(plugin))) break;
  return HeaderPaths.valueOf(paths);
}

function pathOf({ at, id }: NamedPlugin): string {
  return `plugins[${at}]=${encodedName(id)}`;
}

function addIgnoredPlugins(request: ChatRequest, name: (path: string) => boolean): void {
  for (const [at, plugin] of (request.plugins ?? []).entries()) {
    if (supportOfPlugin(plugin, request) === 'ignored' && !name(pathOf({ at, id: plugin.id }))) return;
  }
}

/** Adds the ignored paths below a field. `name` returns false when the header is full; so does this function. */
function addIgnored(path: string, value: unknown, rule: Rule, name: (path: string) => boolean): boolean {
  if (typeof rule === 'object') {
    // A value of another type is the short form of the object.
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
    for (const [field, inner] of Object.entries(value)) {
      if (inner === null || inner === undefined) continue;
      if (!addIgnored(`${path}.${encodedName(field)}`, inner, Object.hasOwn(rule, field) ? (rule[field] ?? false) : false, name)) return false;
    }
    return true;
  }
  const isApplied = typeof rule === 'function' ? rule(value) : rule;
  return isApplied || name(path);
}

/** A name as a header may hold it. The buffer replaces lone surrogates, on which encoding would throw. */
function encodedName(name: string): string {
  if (PLAIN_NAME.test(name)) return name;
  return encodeURIComponent(Buffer.from(name.slice(0, MAX_NAME_CHARS)).toString()).slice(0, MAX_NAME_CHARS);
}

class HeaderPaths {
  #value = '';
  #isFull = false;

  /** @returns false when the header is full */
  add(path: string): boolean {
    if (this.#isFull) return false;
    const next = this.#value === '' ? path : `${this.#value}, ${path}`;
    this.#isFull = next.length > MAX_HEADER_CHARS - MORE.length;
    this.#value = this.#isFull ? `${this.#value}${MORE}` : next;
    return !this.#isFull;
  }

  static valueOf(paths: HeaderPaths | null): string | null {
    return paths === null ? null : paths.#value;
  }
}
