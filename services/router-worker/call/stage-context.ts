import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import { noEngines, type PluginEngines } from '../pipeline/engines.ts';
import type { FileTools, StageContext } from '../pipeline/stage.ts';
import { type Catalogue, namedModels } from './candidates.ts';
import { takesFiles } from './content-fit.ts';
import { searchesByItself } from './native-search.ts';

interface ContextDeps {
  catalogue: Catalogue;
  /** Absent: no plugin is configured. */
  engines?: PluginEngines | undefined;
  /** Absent: files can't be read. */
  files?: FileTools;
}

type OfCall = Pick<StageContext, 'signal' | 'nowMs' | 'candidatesOf' | 'before' | 'fileRead' | 'report'> & {
  surface: Surface;
};

/** What the stages of a call have beside it. */
export function stageContextOf({ surface, ...call }: OfCall, { catalogue, engines = noEngines, files }: ContextDeps): StageContext {
  const endpointsOf = (request: ChatRequest) => namedModels(request, catalogue).flatMap((model) => catalogue.modelEndpoints.get(model) ?? []);
  return {
    ...call,
    engines,
    files: files ?? null,
    messagesField: surface.request?.messagesField ?? 'messages',
    modelOf: (request) => namedModels(request, catalogue)[0]?.id ?? '',
    searchesNatively: (request) => endpointsOf(request).some((endpoint) => searchesByItself(endpoint, request)),
    takesFiles: (request) => endpointsOf(request).some(takesFiles),
  };
}
