import type { RouterErrorBody, Usage } from '../../contracts/router/chat-completion.ts';
import type { EmbeddingList } from '../../contracts/router/embedding-list.ts';
import { type EmbeddingRequest, embeddingLimits, embeddingRequest } from '../../contracts/router/embedding-request.ts';
import { appliesToVectors, isEnabled } from '../../contracts/router/plugins.ts';
import type { Answer } from '../answer.ts';
import type { AnswerHead, PartWriter, RequestForm, Surface } from '../surface.ts';
import { toEmbeddingCall, toModelRequest } from './to-model-request.ts';

/** Beside the token ids: lists, names and what a request states beside its inputs. */
const OTHER_VALUES = 10_000;
const KNOWN_FIELDS: ReadonlySet<string> = new Set(Object.keys(embeddingRequest.shape));

const request: RequestForm<EmbeddingRequest> = {
  path: '/embeddings',
  schema: embeddingRequest,
  messagesField: 'input',
  // The schema copies no input.
  isValid: () => false,
  maxValues: embeddingLimits.tokens + OTHER_VALUES,
  ignoredNames: (body) => Object.keys(body).filter((name) => !KNOWN_FIELDS.has(name) && body[name] !== null && body[name] !== undefined),
  ignoredPlugins: ({ plugins }) => (plugins ?? []).flatMap((plugin, at) => (appliesToVectors(plugin) || !isEnabled(plugin) ? [] : [{ at, id: plugin.id }])),
  toModelRequest,
  toEmbeddingCall,
};

/** Vectors of texts. They come as one body: a stream has them in its last event. */
export const embeddings: Surface = {
  request,
  partWriter: (head) => writerOf(head),
  wholeBody: (answer, head, usage, error) => bodyOf(answer, head, usage, error),
  errorEvent: (body) => eventOf(JSON.stringify(body)),
};

function writerOf(head: AnswerHead): PartWriter {
  return {
    template: { prefix: '', suffix: '' },
    text: () => null,
    parts: () => '',
    debug: (upstreamBody) => eventOf(JSON.stringify({ debug: { echo_upstream_body: upstreamBody } })),
    done: (answer, usage) => eventOf(bodyOf(answer, head, usage)),
  };
}

/** The vectors are JSON already. */
function bodyOf(answer: Answer, head: AnswerHead, usage: Usage, error?: RouterErrorBody['error']): string {
  const data = (answer.vectors ?? []).map((vector, index) => `{"object":"embedding","index":${index},"embedding":${vector}}`).join(',');
  const { id, model, provider } = head;
  const start: Pick<EmbeddingList, 'object' | 'id' | 'model' | 'provider'> = { object: 'list', id, model, provider };
  const end = { usage: usageOf(usage), ...(error !== undefined && { error }) };
  return `${JSON.stringify(start).slice(0, -1)},"data":[${data}],${JSON.stringify(end).slice(1)}`;
}

/** Nothing is generated. */
function usageOf({ prompt_tokens, total_tokens, cost, cost_details, is_byok }: Usage): EmbeddingList['usage'] {
  return {
    prompt_tokens,
    total_tokens,
    ...(cost !== undefined && { cost }),
    ...(cost_details !== undefined && { cost_details }),
    ...(is_byok !== undefined && { is_byok }),
  };
}

function eventOf(data: string): string {
  return `data: ${data}\n\n`;
}
