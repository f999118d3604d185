import type { RouterCall } from '#bus/messages/router.ts';
import { defaultModelOf, type ModelUse, serves, wrongUse } from '#shared/config/model-kinds.ts';
import type { EndpointConfig, ModelConfig, RouterConfig } from '#shared/config/router-config.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { EmbeddingCall } from '#shared/contracts/router/embedding-call.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { UpstreamRequest } from '../providers/provider.ts';
import type { ConfiguredProviders } from '../providers/registry.ts';
import { refuseUnsendable, takingContent } from './content-fit.ts';
import { refuseUnembeddable, takingInputs, type VectorPlan, vectorPlanOf } from './embedding-fit.ts';
import { type Exclusions, type ModelEndpoint, passes } from './model-endpoint.ts';
import { inOrderOf } from './ordering.ts';
import { requestFor, supportsAll, supportsParameter } from './parameters.ts';
import { filterOut } from './preferences.ts';

/** An endpoint for a call, and the request as sent there. */
export interface Candidate {
  model: ModelConfig;
  endpoint: EndpointConfig;
  provider: { slug: string; name: string };
  request: ChatRequest;
  /** Null: a chat. */
  vectors: VectorPlan | null;
}

/** What the candidate's adapter makes its request from. */
export function upstreamRequestOf({ endpoint, request }: Candidate): UpstreamRequest {
  return { model: endpoint.upstream_model, request, maxCompletionTokens: endpoint.max_completion_tokens };
}

/** For the operator: no change of the request helps. */
const UNPRICED =
  "The API key has a credit limit, and the model has no prices: they are set in the router's configuration (prices of its endpoints, or ROUTER_PRICES of npm start)";

type Asked = Pick<RouterCall, 'request' | 'maxTokens' | 'reserved' | 'embedding'>;

/** Index of the configuration. */
export interface Catalogue {
  /** By id and by alias; ids win. */
  models: ReadonlyMap<string, ModelConfig>;
  /** In the configuration's order. */
  modelEndpoints: ReadonlyMap<ModelConfig, readonly ModelEndpoint[]>;
  /** Of chats; empty: none. */
  defaultModel: string;
}

export function catalogueOf(config: Pick<RouterConfig, 'models' | 'default_model'>, providers: ConfiguredProviders): Catalogue {
  const models = new Map<string, ModelConfig>();
  for (const model of config.models) for (const alias of model.aliases) models.set(alias, model);
  for (const model of config.models) models.set(model.id, model);
  return {
    models,
    modelEndpoints: new Map(config.models.map((model) => [model, modelEndpointsOf(model, providers)])),
    defaultModel: defaultModelOf(config)?.id ?? '',
  };
}

function modelEndpointsOf(model: ModelConfig, providers: ConfiguredProviders): ModelEndpoint[] {
  return model.endpoints.flatMap((endpoint) => {
    const provider = providers.get(endpoint.provider);
    return provider === undefined ? [] : [{ model, endpoint, provider }];
  });
}

/**
 * The candidates of a call, best first; pure, never empty.
 *
 * @throws `router.model_unknown` when the request names no known model, `request.invalid` for models of the other use and for what no endpoint can be sent,
 *   `router.no_provider` when none of them can serve it
 */
export function candidatesFor({ request, maxTokens, reserved = false, embedding: asked }: Asked, catalogue: Catalogue): Candidate[] {
  const embedding = asked ?? null;
  const exclusions: Exclusions = new Map();
  const fitting: ModelEndpoint[] = [];
  const models = modelsOf(request, embedding === null ? 'chat' : 'vectors', catalogue);
  const endpointsOf = (model: ModelConfig) => catalogue.modelEndpoints.get(model) ?? [];
  if (embedding === null) refuseUnsendable(request, () => models.flatMap(endpointsOf));
  else refuseUnembeddable(request, embedding, models.flatMap(endpointsOf));
  for (const model of models) {
    const all = reserved ? priced(endpointsOf(model), exclusions) : endpointsOf(model);
    fitting.push(...(embedding === null ? fittingEndpoints(all, request, exclusions) : embeddingEndpoints(all, request, embedding, exclusions)));
  }
  const modelEndpoints = inOrderOf(request, fitting, exclusions);
  if (modelEndpoints.length === 0) {
    throw new SwitchyardError('router.no_provider', isUnpriced(exclusions) ? UNPRICED : 'No provider meets the requirements of this request', {
      details: { excluded_by: [...exclusions].map(([filter, endpoints]) => ({ filter, endpoints })) },
    });
  }
  return modelEndpoints.map(({ model, endpoint, provider }) => ({
    model,
    endpoint,
    provider: { slug: provider.slug, name: provider.name },
    request: embedding === null ? requestFor(endpoint, request, maxTokens) : request,
    vectors: embedding === null ? null : vectorPlanOf({ model, endpoint, provider }, request, embedding),
  }));
}

/** Of the endpoints of one model. */
function embeddingEndpoints(all: readonly ModelEndpoint[], request: ChatRequest, embedding: EmbeddingCall, exclusions: Exclusions): ModelEndpoint[] {
  return filterOut(request, takingInputs(request, embedding, all, exclusions), exclusions);
}

/** The known models of a request, or the default; empty for unknown names alone. */
export function namedModels({ model, models = [] }: ChatRequest, catalogue: Catalogue): ModelConfig[] {
  const named = [...(model === undefined ? [] : [model]), ...models];
  if (named.length === 0) named.push(catalogue.defaultModel);
  return [...new Set(named.flatMap((name) => catalogue.models.get(name) ?? []))];
}

/** What a reserved call costs is billed. */
function priced(all: readonly ModelEndpoint[], exclusions: Exclusions): ModelEndpoint[] {
  return all.filter((modelEndpoint) => passes(modelEndpoint, modelEndpoint.endpoint.prices !== undefined, 'unpriced', exclusions));
}

function isUnpriced(exclusions: Exclusions): boolean {
  return exclusions.size === 1 && exclusions.has('unpriced');
}

/** `model`, then `models`, each once; unknown names, and models of the other use, are skipped beside others. */
function modelsOf({ model, models = [] }: ChatRequest, use: ModelUse, catalogue: Catalogue): ModelConfig[] {
  const only = model === undefined || models.length > 0 ? undefined : catalogue.models.get(model);
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

function fittingEndpoints(all: readonly ModelEndpoint[], request: ChatRequest, exclusions: Exclusions): ModelEndpoint[] {
  const fitting = filterOut(request, takingContent(request, all, exclusions), exclusions).filter(
    (modelEndpoint) =>
      passes(modelEndpoint, fitsTokens(modelEndpoint.endpoint, request), 'context_length', exclusions) &&
      passes(modelEndpoint, request.provider?.require_parameters !== true || supportsAll(modelEndpoint.endpoint, request), 'require_parameters', exclusions),
  );
  // Dropping one of these changes the answer, so endpoints that support it exclude the others.
  return ['tools', 'response_format', 'verbosity'].reduce((modelEndpoints, parameter) => preferring(modelEndpoints, parameter, request), fitting);
}

function preferring(modelEndpoints: ModelEndpoint[], parameter: string, request: ChatRequest): ModelEndpoint[] {
  if (request[parameter] === undefined) return modelEndpoints;
  const able = modelEndpoints.filter(({ endpoint }) => supportsParameter(endpoint, parameter, request));
  return able.length > 0 ? able : modelEndpoints;
}

function fitsTokens({ max_completion_tokens: most = Infinity, context_length: context = Infinity }: EndpointConfig, request: ChatRequest): boolean {
  const asked = request.max_completion_tokens ?? request.max_tokens ?? 0;
  return asked <= most && asked < context;
}
