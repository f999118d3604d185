import type { ChatRequest } from '../contracts/router/chat-request.ts';

/** Fields that say what is asked or how it is routed; all others tune the model and need the endpoint's support. */
const NOT_PARAMETERS: ReadonlySet<string> = new Set([
  'messages',
  'model',
  'models',
  'provider',
  'plugins',
  'route',
  'user',
  'session_id',
  'metadata',
  'stream',
  'stream_options',
  'debug',
  'trace',
  'transforms',
  'usage',
  'cache_control',
  'include_reasoning',
  'prompt_cache_key',
  'safety_identifier',
  'provider_options',
]);

/** Whether a field tunes the model, or is unknown. */
export function isParameter(name: string): boolean {
  return !NOT_PARAMETERS.has(name);
}

/** What a request asks for beside what every endpoint does. */
export function neededParameters(request: ChatRequest): readonly string[] {
  return Object.keys(request).filter((name) => isParameter(name) && request[name] !== null && request[name] !== undefined && !isDefault(name, request));
}

/** Asks for what every endpoint does. Clients send many of these with each request. */
function isDefault(name: string, { [name]: value, modalities, response_format: format, tools }: ChatRequest): boolean {
  switch (name) {
    case 'n':
    case 'repetition_penalty':
      return value === 1;
    case 'logprobs':
    case 'store':
      return value === false;
    case 'top_logprobs':
    case 'frequency_penalty':
    case 'presence_penalty':
    case 'min_p':
    case 'top_a':
    case 'top_k':
      return value === 0;
    case 'stop':
      return Array.isArray(value) && value.length === 0;
    case 'logit_bias':
      return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
    case 'truncation':
      return value === 'disabled';
    case 'service_tier':
      return value === 'auto';
    case 'parallel_tool_calls':
      return !tools?.length;
    case 'tool_choice':
      return !tools?.length && (value === 'auto' || value === 'none');
    case 'modalities':
      return modalities?.every((modality) => modality === 'text') ?? true;
    case 'response_format':
      return format?.type === 'text';
    default:
      return false;
  }
}
