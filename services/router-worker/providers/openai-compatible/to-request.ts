import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { areUnchangedWithout, deferMessages, deferredIn } from '#shared/prompts/deferred-messages.ts';
import type { ProviderCall } from '../provider.ts';
import { askForReasoning } from './ask-for-reasoning.ts';
import type { RequestForm } from './request-form.ts';
import { toMessage, withoutCacheControl } from './to-message.ts';

/** What an upstream model accepts; the adapter learns it from errors. */
export interface ParameterCompatibility {
  /** OpenAI's reasoning models refuse `max_tokens`; most other servers know nothing else. */
  maxTokensField: RequestForm['maxTokensField'];
  refused: ReadonlySet<string>;
}

/**
 * Fields that mean nothing, or something else, upstream. `n` asks for several answers where we serve one; OpenAI refuses `metadata` for requests that it
 * doesn't store. Unknown fields are passed on.
 */
const DECIDED_HERE: ReadonlySet<string> = new Set([
  'provider',
  'plugins',
  'models',
  'route',
  'session_id',
  'debug',
  'trace',
  'transforms',
  'metadata',
  'cache_control',
  'provider_options',
  'include_reasoning',
  'reasoning',
  'usage',
  'n',
  'max_tokens',
  'max_completion_tokens',
]);

/** Stated with the rest on reasoning, unless the provider's own options have it. */
const ROUTER_ONLY: ReadonlySet<string> = new Set([...DECIDED_HERE, 'reasoning_effort']);

/** What is known of the upstream. */
export interface UpstreamTraits {
  /** The provider's, whose `provider_options` are sent. */
  slug: string;
  form: RequestForm;
}

const USAGE = { include_usage: true };
const NOTHING: ReadonlySet<string> = new Set();
const NO_MESSAGES: readonly unknown[] = [];

/** The upstream request body: always streamed, always with usage. Deferred messages go as they are: `toMessage` changes nothing in texts. */
export function toRequest(
  { model, request }: Pick<ProviderCall, 'model' | 'request'>,
  compatibility: ParameterCompatibility,
  { slug, form }: UpstreamTraits,
): Record<string, unknown> {
  const { extensions, renamed } = form;
  const leftOut = requiresParameters(request) ? NOTHING : form.leftOut;
  const body: Record<string, unknown> = { model };
  for (const name of Object.keys(request)) {
    if (ROUTER_ONLY.has(name) || leftOut.has(name)) continue;
    // Set below, in this place.
    const value = name === 'messages' ? NO_MESSAGES : request[name];
    if (value !== null && value !== undefined) body[nameIn(renamed, name)] = value;
  }
  const own = ownOptions(request, slug);
  for (const name in own) if (!DECIDED_HERE.has(name)) body[name] = own[name];
  const marks = extensions.has('cache_control');
  if (marks && request.cache_control) body.cache_control = request.cache_control;
  body.model = model;
  const deferred = areUnchangedWithout(form.messageFieldsLeftOut) ? deferredIn(request) : null;
  if (deferred === null) body.messages = request.messages.map((message) => toMessage(message, form));
  else deferMessages(body, deferred);
  if (request.tools !== undefined) body.tools = marks ? request.tools : request.tools.map(withoutCacheControl);
  body.stream = true;
  if (form.asksForUsage) body.stream_options = request.stream_options === undefined ? USAGE : { ...request.stream_options, ...USAGE };
  else delete body.stream_options;
  const maxTokens = request.max_completion_tokens ?? request.max_tokens ?? null;
  if (maxTokens !== null) body[compatibility.maxTokensField] = maxTokens;
  if (form.grammarIn !== null && request.response_format?.type === 'grammar') stateGrammar(body, request.response_format.grammar, form.grammarIn);
  askForReasoning(body, request, form);
  for (const name of compatibility.refused) delete body[name];
  return body;
}

function stateGrammar(body: Record<string, unknown>, grammar: string, field: NonNullable<RequestForm['grammarIn']>): void {
  delete body.response_format;
  body[field] = field === 'grammar' ? grammar : { grammar };
}

/** With `require_parameters` nothing is dropped: the caller gets the upstream's error instead. */
export function requiresParameters({ provider }: ChatRequest): boolean {
  return provider?.require_parameters === true;
}

function nameIn(renamed: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(renamed, name) ? (renamed[name] ?? name) : name;
}

/** Of this provider alone; they overrule the request's fields, but not what the router decides. */
function ownOptions({ provider_options: options }: ChatRequest, slug: string): Record<string, unknown> {
  return options && Object.hasOwn(options, slug) ? (options[slug] ?? {}) : {};
}
