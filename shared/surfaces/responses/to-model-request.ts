import type { ChatRequest } from '../../contracts/router/chat-request.ts';
import { type ResponsesRequest, responsesRequest } from '../../contracts/router/responses-request.ts';
import { toMessages } from './to-messages.ts';
import { formatOf, toTools, webSearchIn } from './to-tools.ts';

/** Fields that a chat has under the same name. */
const SAME = [
  ...(['model', 'models', 'provider', 'route', 'user', 'session_id', 'metadata', 'trace', 'stream', 'temperature', 'top_p', 'top_k'] as const),
  ...(['presence_penalty', 'frequency_penalty', 'parallel_tool_calls', 'reasoning', 'modalities', 'image_config', 'service_tier'] as const),
  ...(['prompt_cache_key', 'safety_identifier'] as const),
] as const;
const LOGPROBS = 'message.output_text.logprobs';
/** Reasoning is always complete: the conversation is stored nowhere else. */
const EFFECTIVE_INCLUDES: ReadonlySet<string> = new Set([LOGPROBS, 'reasoning.encrypted_content']);

/** Of the body: those that the schema accepts, and that have no effect. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['debug', 'max_tool_calls']);
/** Without effect by design: what they say holds, or says nothing of the answer. */
const SILENT: ReadonlySet<string> = new Set(['stream_options', 'store', 'background', 'previous_response_id', 'conversation', 'prompt']);
const KNOWN: ReadonlySet<string> = new Set(Object.keys(responsesRequest.shape));

/** @throws `request.invalid` naming what has no form in a chat */
export function toModelRequest(body: ResponsesRequest): ChatRequest {
  const { max_output_tokens: maxTokens, top_logprobs: top, text } = body;
  const same = SAME.flatMap((name) => (body[name] === null || body[name] === undefined ? [] : [[name, body[name]]]));
  const hasLogprobs = (typeof top === 'number' && top > 0) || body.include?.includes(LOGPROBS) === true;
  const format = formatOf(text?.format);
  return {
    ...Object.fromEntries(same),
    messages: toMessages(body),
    ...pluginsOf(body),
    ...toTools(body),
    ...(typeof maxTokens === 'number' && { max_tokens: maxTokens }),
    ...(hasLogprobs && { logprobs: true, top_logprobs: top ?? 0 }),
    ...(format !== null && { response_format: format }),
    ...(text?.verbosity && { verbosity: text.verbosity }),
  };
}

function pluginsOf(body: ResponsesRequest): Pick<ChatRequest, 'plugins'> {
  const plugins = body.plugins ?? [];
  const search = plugins.some(({ id }) => id === 'web') ? null : webSearchIn(body);
  return plugins.length === 0 && search === null ? {} : { plugins: search === null ? plugins : [...plugins, search] };
}

/** Beside those that a chat, too, would ignore. */
export function ignoredNames(body: ResponsesRequest): string[] {
  return Object.entries(body).flatMap(([name, value]) => {
    if (value === null || value === undefined || SILENT.has(name)) return [];
    const isIgnored =
      !KNOWN.has(name) ||
      WITHOUT_EFFECT.has(name) ||
      (name === 'truncation' && value === 'auto') ||
      (name === 'include' && body.include?.some((wanted) => !EFFECTIVE_INCLUDES.has(wanted)));
    return isIgnored ? [name] : [];
  });
}
