import type { RequestForm } from './request-form.ts';
import { anyVectors, type VectorForm } from './vector-form.ts';

/** What is known of a vendor's server, or of a program that serves this API. */
export interface Profile extends RequestForm {
  /** Null: each has its own, and the block states it. */
  baseUrl: string | null;
  /** Names of hosts that are this vendor's alone: their blocks need not name the profile. */
  hosts: readonly string[];
  keyHeader: 'bearer' | 'api-key';
  /** Appended to the base URL; `{model}` is the upstream's name of the model. */
  path: string;
  /** Whether the query has `api-version`, from `api_version` of the block. */
  apiVersion: 'none' | 'optional' | 'required';
  /** True: `completion_tokens` are without the reasoning tokens. */
  countsReasoningApart: boolean;
  /** Type or message of a refusal because of too long a prompt, beside OpenAI's; null: none. */
  tooLong: RegExp | null;
  vectors: VectorForm;
}

const NONE: ReadonlySet<string> = new Set();
const SAMPLING_BEYOND_OPENAI = ['top_k', 'top_a', 'min_p', 'repetition_penalty'];
const OF_OPENAI_ALONE = ['prediction', 'modalities', 'audio', 'image_config', 'verbosity', 'prompt_cache_key', 'safety_identifier', 'web_search_options'];
const LOGPROBS = ['logprobs', 'top_logprobs'];
const LOW_TO_HIGH = ['low', 'medium', 'high'] as const;

const generic: Profile = {
  baseUrl: null,
  hosts: [],
  keyHeader: 'bearer',
  path: '/chat/completions',
  apiVersion: 'none',
  countsReasoningApart: false,
  tooLong: null,
  vectors: anyVectors,
  maxTokensField: 'max_tokens',
  extensions: new Set(),
  leftOut: NONE,
  renamed: {},
  messageFieldsLeftOut: NONE,
  asksForUsage: true,
  grammarIn: null,
  efforts: null,
  reasoningSwitch: null,
};

const openAi: Profile = {
  ...generic,
  baseUrl: 'https://api.openai.com/v1',
  hosts: ['api.openai.com'],
  // Some of its models take this name only, and all take it.
  maxTokensField: 'max_completion_tokens',
  leftOut: new Set([...SAMPLING_BEYOND_OPENAI, 'image_config']),
  vectors: { maxInputs: 2_048, givesBase64: true, dimensionsField: 'dimensions', takesTokens: true, takesInputType: false },
};

/** No hosts: at an address of Azure the credential may also be a bearer token. */
const azure: Profile = { ...openAi, baseUrl: null, hosts: [], keyHeader: 'api-key', apiVersion: 'optional' };

export const PROFILES = {
  generic,
  openai: openAi,
  azure,
  /** The API before v1: a path per deployment. */
  'azure-deployments': { ...azure, path: '/deployments/{model}/chat/completions', apiVersion: 'required' },
  openrouter: {
    ...generic,
    baseUrl: 'https://openrouter.ai/api/v1',
    hosts: ['openrouter.ai'],
    vectors: { ...anyVectors, givesBase64: true },
    extensions: new Set(['reasoning', 'cache_control', 'reasoning_details']),
  },
  groq: {
    ...generic,
    baseUrl: 'https://api.groq.com/openai/v1',
    hosts: ['api.groq.com'],
    maxTokensField: 'max_completion_tokens',
    leftOut: new Set([...SAMPLING_BEYOND_OPENAI, ...OF_OPENAI_ALONE, ...LOGPROBS, 'logit_bias']),
    messageFieldsLeftOut: new Set(['name']),
    efforts: ['none', ...LOW_TO_HIGH],
  },
  together: {
    ...generic,
    baseUrl: 'https://api.together.xyz/v1',
    hosts: ['api.together.xyz', 'api.together.ai'],
    vectors: { ...anyVectors, takesTokens: false, takesInputType: false },
    // Its `logprobs` is a number.
    leftOut: new Set(LOGPROBS),
    efforts: LOW_TO_HIGH,
    tooLong: /tokens.* must be <= \d/i,
  },
  mistral: {
    ...generic,
    baseUrl: 'https://api.mistral.ai/v1',
    hosts: ['api.mistral.ai'],
    vectors: { ...anyVectors, dimensionsField: 'output_dimension', takesTokens: false, takesInputType: false },
    leftOut: new Set([
      ...SAMPLING_BEYOND_OPENAI,
      ...OF_OPENAI_ALONE.filter((name) => name !== 'prediction'),
      ...LOGPROBS,
      'logit_bias',
      'user',
      'service_tier',
    ]),
    renamed: { seed: 'random_seed' },
    asksForUsage: false,
    efforts: ['none', 'high'],
  },
  deepseek: {
    ...generic,
    baseUrl: 'https://api.deepseek.com',
    hosts: ['api.deepseek.com'],
    // A turn with tool calls is refused without its reasoning.
    extensions: new Set(['reasoning_content']),
    efforts: ['high', 'max'],
    reasoningSwitch: 'thinking',
  },
  xai: {
    ...generic,
    baseUrl: 'https://api.x.ai/v1',
    hosts: ['api.x.ai'],
    maxTokensField: 'max_completion_tokens',
    leftOut: new Set([...SAMPLING_BEYOND_OPENAI, 'logit_bias']),
    efforts: ['low', 'high'],
    countsReasoningApart: true,
    tooLong: /maximum prompt length/i,
  },
  vllm: {
    ...generic,
    baseUrl: 'http://127.0.0.1:8000/v1',
    extensions: new Set(['reasoning_content']),
    vectors: { ...anyVectors, givesBase64: true },
    grammarIn: 'structured_outputs',
    efforts: LOW_TO_HIGH,
    reasoningSwitch: 'chat_template_kwargs',
  },
  ollama: {
    ...generic,
    baseUrl: 'http://127.0.0.1:11434/v1',
    vectors: { ...anyVectors, takesTokens: false },
    efforts: ['none', ...LOW_TO_HIGH],
  },
  'llama.cpp': {
    ...generic,
    baseUrl: 'http://127.0.0.1:8080/v1',
    extensions: new Set(['reasoning_content']),
    vectors: { ...anyVectors, givesBase64: true },
    renamed: { repetition_penalty: 'repeat_penalty' },
    grammarIn: 'grammar',
    reasoningSwitch: 'chat_template_kwargs',
    tooLong: /exceed_context_size|available context size/i,
  },
} as const satisfies Readonly<Record<string, Profile>>;

export type ProfileName = keyof typeof PROFILES;

/** The profile that is named, or else the one of the host, or else the generic one. @param hostname null: the block states no address */
export function profileOf(named: ProfileName | undefined, hostname: string | null): Profile {
  if (named !== undefined) return PROFILES[named];
  return Object.values<Profile>(PROFILES).find(({ hosts }) => hostname !== null && hosts.includes(hostname)) ?? generic;
}
