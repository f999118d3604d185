import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { noEngines, type PluginEngines } from '../pipeline/engines.ts';
import type { StageContext } from '../pipeline/stage.ts';
import { type Catalogue, namedModels } from './candidates.ts';
import { searchesByItself } from './native-search.ts';

interface ContextDeps {
  catalogue: Catalogue;
  /** Absent: no plugin is configured. */
  engines?: PluginEngines;
}

/** What the stages of a call have beside it. */
export function stageContextOf(
  call: Pick<StageContext, 'signal' | 'nowMs' | 'candidatesOf' | 'report'>,
  { catalogue, engines = noEngines }: ContextDeps,
): StageContext {
  const endpointsOf = (request: ChatRequest) => namedModels(request, catalogue).flatMap((model) => catalogue.modelEndpoints.get(model) ?? []);
  return {
    ...call,
    engines,
    modelOf: (request) => namedModels(request, catalogue)[0]?.id ?? '',
    searchesNatively: (request) => endpointsOf(request).some((endpoint) => searchesByItself(endpoint, request)),
  };
}
