import type { ChatRequest } from '../contracts/router/chat-request.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { ModelUse } from './model-kinds.ts';
import type { ModelNames } from './model-names.ts';
import type { ModelSuffix } from './model-suffixes.ts';

/** `provider.sort` of a request. */
const SORTS = { nitro: 'throughput', floor: 'price', exacto: 'exacto' } as const;
/** What changes a chat, and has no meaning for vectors. */
const OF_CHATS: readonly ModelSuffix[] = ['online', 'thinking'];
type Sort = (typeof SORTS)[keyof typeof SORTS];

/**
 * The request with what the suffixes of its models' names ask for, as fields; the same object when they ask for nothing. Fields that the request has win. The
 * names stay, so that a second call changes nothing: gateways and workers both make it. Suffixes count for the whole request, of several orders the first.
 * @throws `request.invalid` for a name with two orders, and for one that asks a model of vectors for what only chats have
 */
export function withSuffixEffects(request: ChatRequest, use: ModelUse, names: ModelNames): ChatRequest {
  const { model, models = [] } = request;
  if (!model?.includes(':') && !models.some((name) => name.includes(':'))) return request;
  let sort: Sort | null = null;
  let isOnline = false;
  let isThinking = false;
  for (const name of model === undefined ? models : [model, ...models]) {
    const suffixes = names.resolve(name)?.suffixes ?? [];
    const param = name === model ? 'model' : 'models';
    sort ??= sortOf(suffixes, param);
    if (use === 'vectors') refuseOfChats(suffixes, param);
    isOnline ||= suffixes.includes('online');
    isThinking ||= suffixes.includes('thinking');
  }
  if (sort === null && !isOnline && !isThinking) return request;
  return {
    ...request,
    ...(sort !== null && withSort(request, sort)),
    ...(isOnline && withPlugin(request, 'web')),
    ...(isThinking && withReasoning(request)),
  };
}

function sortOf(suffixes: readonly ModelSuffix[], param: string): Sort | null {
  const [first = null, second] = suffixes.flatMap((suffix) => (suffix in SORTS ? [suffix as keyof typeof SORTS] : []));
  if (second !== undefined) throw invalid(param, `:${first} and :${second} ask for two orders of the endpoints: use one of them`);
  return first === null ? null : SORTS[first];
}

function refuseOfChats(suffixes: readonly ModelSuffix[], param: string): void {
  const found = suffixes.find((suffix) => OF_CHATS.includes(suffix));
  if (found !== undefined) throw invalid(param, `:${found} has no meaning for embeddings`);
}

function withSort({ provider }: ChatRequest, by: Sort): Partial<ChatRequest> {
  const { sort } = provider ?? {};
  if (typeof sort === 'string' || (sort?.by ?? null) !== null) return {};
  return { provider: { ...provider, sort: sort ? { ...sort, by } : by } };
}

function withPlugin({ plugins = [] }: ChatRequest, id: 'web'): Partial<ChatRequest> {
  return plugins.some((plugin) => plugin.id === id) ? {} : { plugins: [...plugins, { id }] };
}

function withReasoning({ reasoning, reasoning_effort: effort, include_reasoning: included }: ChatRequest): Partial<ChatRequest> {
  const isGiven = reasoning !== undefined || (effort ?? null) !== null || (included ?? null) !== null;
  return isGiven ? {} : { reasoning: { enabled: true } };
}

function invalid(param: string, message: string): SwitchyardError {
  return new SwitchyardError('request.invalid', `${param} ${message}`, { details: { param } });
}
