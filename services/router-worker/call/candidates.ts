import type { RouterCall } from '#bus/messages/router.ts';
import { type AccountRules, type AccountRulesTable, accountRulesOf } from '#shared/config/account-rules.ts';
import { defaultModelOf, type ModelUse, serves, wrongUse } from '#shared/config/model-kinds.ts';
import { type ModelNames, modelNamesOf } from '#shared/config/model-names.ts';
import type { EndpointConfig, ModelConfig, RouterConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { type PromptSize, promptSizeOf } from '#shared/credit/prompt-size.ts';
import { askedTier, isUnpriced } from '#shared/credit/service-tiers.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { neededParameters } from '#shared/prompts/needed-parameters.ts';
import type { UpstreamRequest } from '../providers/provider.ts';
import type { ConfiguredProviders } from '../providers/registry.ts';
import { readingPdfs, readsPdfs, refuseUnsendable, takingContent } from './content-fit.ts';
import { fittingContext } from './context-fit.ts';
import { type Decision, decisionOf } from './decision.ts';
import { refuseUnembeddable, takingInputs, type VectorPlan, vectorPlanOf } from './embedding-fit.ts';
import { tokenMixOf } from './expected-price.ts';
import type { HealthView } from './health-view.ts';
import { type Exclusions, type ModelEndpoint, modelEndpointsOf, passes } from './model-endpoint.ts';
import { searchesByItself } from './native-search.ts';
import { inOrderOf } from './ordering.ts';
import { requestFor, supportsAll, supportsParameter } from './parameters.ts';
import { filterOut, quickEnough } from './preferences.ts';

/** An endpoint for a call, and the request as sent there. */
export interface Candidate {
  /** `<model id>@<tag>`. */
  id: string;
  model: ModelConfig;
  endpoint: EndpointConfig;
  provider: { slug: string; name: string };
  request: ChatRequest;
  /** Null: a chat. */
  vectors: VectorPlan | null;
  /** Whether it can search the web by itself for this request. Absent: no. */
  searchesNatively?: boolean;
  /** Whether it is to. Absent: no. */
  searchesWeb?: boolean;
  /** Whether it reads PDFs by itself. Absent: no. */
  readsPdf?: boolean;
}

/** What the candidate's adapter makes its request from. */
export function upstreamRequestOf({ endpoint, request, searchesWeb = false }: Candidate): UpstreamRequest {
  const call = { model: endpoint.upstream_model, request, maxCompletionTokens: endpoint.max_completion_tokens };
  return searchesWeb ? { ...call, searchesWeb } : call;
}

type Asked = Pick<RouterCall, 'request' | 'maxTokens' | 'reserved' | 'embedding'> & {
  /** Whether the endpoint is to search the web by itself: those that can't are excluded. Absent: no. */
  isSearchNative?: boolean;
  /** Whether its PDFs were left to the endpoints that read them: the others are excluded. Absent: no. */
  hasUnreadFiles?: boolean;
};

/** Index of the configuration. */
export interface Catalogue {
  names: ModelNames;
  /** In the configuration's order. */
  modelEndpoints: ReadonlyMap<ModelConfig, readonly ModelEndpoint[]>;
  /** Of chats; empty: none. */
  defaultModel: string;
  rules: AccountRulesTable;
}

type Catalogued = Pick<RouterConfig, 'models' | 'default_model'> & Partial<Pick<RouterConfig, 'account' | 'keys'>>;

export function catalogueOf(config: Catalogued, providers: ConfiguredProviders): Catalogue {
  const names = modelNamesOf(config);
  return {
    names,
    modelEndpoints: new Map(names.models.map((model) => [model, modelEndpointsOf(model, providers)])),
    defaultModel: defaultModelOf(config)?.id ?? '',
    rules: accountRulesOf(config),
  };
}

/** What a decision is made from, beside the request. */
export interface Circumstances {
  catalogue: Catalogue;
  /** Of the account and the key. */
  rules: AccountRules;
  health: HealthView;
  /** The endpoint (`<model id>@<tag>`) that served this conversation last; null: none. */
  stickyTo: string | null;
  /** Of the draw: the id of the call. Equal seeds give equal orders. */
  seed: string;
}

export interface Choice {
  /** Best first; empty: no endpoint meets the requirements (`noProvider`). */
  candidates: Candidate[];
  decision: Decision;
}

/**
 * The candidates of a call, and why these; pure.
 *
 * @throws `router.model_unknown` when the request names no known model, `request.invalid` for models of the other use and for what no endpoint can be sent
 */
export function candidatesFor(asked: Asked, circumstances: Circumstances): Choice {
  const { request, maxTokens, reserved = false, isSearchNative = false, hasUnreadFiles = false } = asked;
  const { catalogue, rules, health, stickyTo, seed } = circumstances;
  const embedding = asked.embedding ?? null;
  const exclusions: Exclusions = new Map();
  const fitting: ModelEndpoint[] = [];
  const models = modelsOf(request, embedding === null ? 'chat' : 'vectors', catalogue);
  const endpointsOf = (model: ModelConfig) => catalogue.modelEndpoints.get(model) ?? [];
  if (embedding === null) refuseUnsendable(request, () => models.flatMap(endpointsOf));
  else refuseUnembeddable(request, embedding, models.flatMap(endpointsOf));
  let known: PromptSize | null = null;
  const size = () => (known ??= promptSizeOf(request));
  for (const model of models) {
    const all = reserved ? priced(endpointsOf(model), exclusions) : endpointsOf(model);
    const allowed = filterOut(request, all, rules, exclusions);
    const permitted = isSearchNative ? searching(request, allowed, exclusions) : allowed;
    const reading = hasUnreadFiles ? readingPdfs(permitted, exclusions) : permitted;
    const able =
      embedding === null ? takingChat({ request, isReserved: reserved }, reading, size, exclusions) : takingInputs(request, embedding, reading, exclusions);
    const quick = quickEnough(request, able, health, exclusions);
    fitting.push(...(embedding === null ? supporting(request, quick, exclusions) : quick));
  }
  const mix = () => tokenMixOf(request, size(), embedding);
  const ordering = inOrderOf(fitting, { request, health, stickyTo, seed, mix }, exclusions);
  const candidates = ordering.modelEndpoints.map(
    (modelEndpoint) => new EndpointCandidate(modelEndpoint, { request, maxTokens, embedding, isSearchNative, isReserved: reserved }),
  );
  return { candidates, decision: decisionOf(namesIn(request), ordering, exclusions) };
}

interface CandidateRequest {
  request: ChatRequest;
  maxTokens: number | null;
  /** Null: a chat. */
  embedding: NonNullable<Asked['embedding']> | null;
  isSearchNative: boolean;
  isReserved: boolean;
}

/**
 * Most candidates are never tried: what is sent to them is made when it is. A class, as V8 makes the accessors of an object literal for each object, in the
 * old generation, where they retained the call until the next full collection.
 */
class EndpointCandidate implements Candidate {
  readonly id: string;
  readonly model: ModelConfig;
  readonly endpoint: EndpointConfig;
  readonly provider: { slug: string; name: string };
  readonly searchesWeb: boolean;
  readonly readsPdf: boolean;
  readonly #of: ModelEndpoint;
  readonly #asked: CandidateRequest;
  #request: ChatRequest | null = null;
  #vectors: VectorPlan | null | undefined;

  constructor(modelEndpoint: ModelEndpoint, asked: CandidateRequest) {
    const { id, model, endpoint, provider } = modelEndpoint;
    this.id = id;
    this.model = model;
    this.endpoint = endpoint;
    this.provider = provider;
    this.searchesWeb = asked.isSearchNative;
    this.readsPdf = readsPdfs(modelEndpoint);
    this.#of = modelEndpoint;
    this.#asked = asked;
  }

  get searchesNatively(): boolean {
    return searchesByItself(this.#of, this.#asked.request);
  }

  get request(): ChatRequest {
    const { request, maxTokens, embedding, isReserved } = this.#asked;
    this.#request ??= embedding === null ? requestFor(this.#of, request, maxTokens, isReserved) : request;
    return this.#request;
  }

  get vectors(): VectorPlan | null {
    const { request, embedding } = this.#asked;
    if (this.#vectors === undefined) this.#vectors = embedding === null ? null : vectorPlanOf(this.#of, request, embedding);
    return this.#vectors;
  }
}

function namesIn({ model, models = [] }: ChatRequest): readonly string[] {
  return model === undefined ? models : [model, ...models];
}

/** The known models of a request, or the default; empty for unknown names alone. */
export function namedModels({ model, models = [] }: ChatRequest, catalogue: Catalogue): ModelConfig[] {
  const only = model === undefined || models.length > 0 ? null : (catalogue.names.resolve(model)?.model ?? null);
  if (only !== null) return [only];
  const names = namesIn({ messages: [], model, models });
  const named = names.length === 0 ? [catalogue.defaultModel] : names;
  return [...new Set(named.flatMap((name) => catalogue.names.resolve(name)?.model ?? []))];
}

function searching(request: ChatRequest, all: readonly ModelEndpoint[], exclusions: Exclusions): ModelEndpoint[] {
  return all.filter((modelEndpoint) => passes(modelEndpoint, searchesByItself(modelEndpoint, request), 'web_search', exclusions));
}

/** What a reserved call costs is billed. */
function priced(all: readonly ModelEndpoint[], exclusions: Exclusions): ModelEndpoint[] {
  return all.filter((modelEndpoint) => passes(modelEndpoint, modelEndpoint.endpoint.prices !== undefined, 'unpriced', exclusions));
}

/** `model`, then `models`, each once; unknown names, and models of the other use, are skipped beside others. */
function modelsOf({ model, models = [] }: ChatRequest, use: ModelUse, catalogue: Catalogue): ModelConfig[] {
  const only = model === undefined || models.length > 0 ? undefined : catalogue.names.resolve(model)?.model;
  if (only !== undefined && serves(only, use)) return [only];
  const known = namedModels({ messages: [], model, models }, catalogue);
  if (known.length === 0) {
    throw new SwitchyardError('router.model_unknown', `${model ?? models[0] ?? catalogue.defaultModel} is not a valid model ID`, {
      details: { param: model === undefined ? 'models' : 'model' },
    });
  }
  const serving = known.filter((one) => serves(one, use));
  if (serving.length === 0) throw wrongUse(model ?? models[0] ?? catalogue.defaultModel, use, model === undefined ? 'models' : 'model');
  return serving;
}

/** Of one model: endpoints with the capacity for the request, and with what it contains and requires. */
function takingChat(
  { request, isReserved }: Pick<CandidateRequest, 'request' | 'isReserved'>,
  all: readonly ModelEndpoint[],
  size: () => PromptSize,
  exclusions: Exclusions,
): readonly ModelEndpoint[] {
  const able = takingContent(request, fittingContext(request, all, size, exclusions), exclusions);
  if (request.provider?.require_parameters !== true) return able;
  const needed = neededParameters(request);
  const hasTier = ({ endpoint: { provider, prices } }: ModelEndpoint) => !isReserved || !isUnpriced(askedTier(request, provider), prices);
  const hasAll = (modelEndpoint: ModelEndpoint) => supportsAll(modelEndpoint, request, needed) && hasTier(modelEndpoint);
  return able.filter((modelEndpoint) => passes(modelEndpoint, hasAll(modelEndpoint), 'require_parameters', exclusions));
}

/** Dropping one of these changes the answer, so endpoints of the model that support it exclude the others. */
const DECISIVE_PARAMETERS = ['tools', 'response_format', 'verbosity'];

function supporting(request: ChatRequest, all: readonly ModelEndpoint[], exclusions: Exclusions): readonly ModelEndpoint[] {
  return DECISIVE_PARAMETERS.reduce((left, parameter) => preferring(left, parameter, request, exclusions), all);
}

function preferring(all: readonly ModelEndpoint[], parameter: string, request: ChatRequest, exclusions: Exclusions): readonly ModelEndpoint[] {
  if (request[parameter] === undefined) return all;
  const supports = (modelEndpoint: ModelEndpoint) => supportsParameter(modelEndpoint, parameter, request);
  return all.some(supports) ? all.filter((modelEndpoint) => passes(modelEndpoint, supports(modelEndpoint), parameter, exclusions)) : all;
}
