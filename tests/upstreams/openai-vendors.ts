import type { ProfileName } from '../../services/router-worker/providers/openai-compatible/profiles.ts';

/** How a server of this API differs on the wire. Stated apart from the adapter's profiles, so that one can contradict the other. */
export interface OpenAiVendor {
  /** Behind the base URL. */
  path: string;
  keyHeader: 'authorization' | 'api-key';
  /** Fields of a request that it refuses. */
  refused: readonly string[];
  /** Whether messages may have a `name`. */
  takesNames: boolean;
  /** Where its reasoning is, in answers and in messages that are sent back; `none`: it takes nothing back. */
  reasoningIn: 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'pieces';
  takesBack: 'reasoning_content' | 'reasoning_details' | 'none';
  usageIn: 'own-chunk' | 'last-choice' | 'x_groq';
  cachedIn: 'prompt_tokens_details' | 'prompt_cache_hit_tokens';
  /** Whether `completion_tokens` are without the reasoning tokens. */
  countsReasoningApart: boolean;
}

const SAMPLING = ['top_k', 'top_a', 'min_p', 'repetition_penalty'];
const LOGPROBS = ['logprobs', 'top_logprobs'];
/** Of the router alone. */
const OURS = ['provider', 'plugins', 'models', 'route', 'session_id', 'debug', 'metadata', 'include_reasoning'];

export const PLAIN_VENDOR: OpenAiVendor = {
  path: '/chat/completions',
  keyHeader: 'authorization',
  refused: [...OURS, 'reasoning', 'cache_control'],
  takesNames: true,
  reasoningIn: 'reasoning_content',
  takesBack: 'none',
  usageIn: 'own-chunk',
  cachedIn: 'prompt_tokens_details',
  countsReasoningApart: false,
};

const openAi: OpenAiVendor = { ...PLAIN_VENDOR, refused: [...PLAIN_VENDOR.refused, ...SAMPLING, 'max_tokens', 'image_config'] };
const azure: OpenAiVendor = { ...openAi, keyHeader: 'api-key' };
const ofModels: OpenAiVendor = { ...PLAIN_VENDOR, takesBack: 'reasoning_content' };

/** The path of Azure's deployments has the model of the suite. */
export const OPENAI_VENDORS: Readonly<Record<Exclude<ProfileName, 'generic'>, OpenAiVendor>> = {
  openai: openAi,
  azure: { ...azure, path: '/chat/completions?api-version=preview' },
  'azure-deployments': { ...azure, path: '/deployments/loopback-model/chat/completions?api-version=2024-10-21' },
  openrouter: {
    ...PLAIN_VENDOR,
    refused: [...OURS, 'reasoning_effort'],
    reasoningIn: 'reasoning_details',
    takesBack: 'reasoning_details',
    usageIn: 'last-choice',
  },
  groq: {
    ...PLAIN_VENDOR,
    refused: [...PLAIN_VENDOR.refused, ...SAMPLING, ...LOGPROBS, 'logit_bias', 'verbosity', 'prompt_cache_key', 'max_tokens'],
    takesNames: false,
    reasoningIn: 'reasoning',
    usageIn: 'x_groq',
  },
  together: { ...PLAIN_VENDOR, refused: [...PLAIN_VENDOR.refused, ...LOGPROBS], reasoningIn: 'reasoning', usageIn: 'last-choice' },
  mistral: {
    ...PLAIN_VENDOR,
    refused: [
      ...PLAIN_VENDOR.refused,
      ...[...SAMPLING, ...LOGPROBS, 'logit_bias', 'verbosity', 'prompt_cache_key', 'user', 'service_tier', 'seed', 'stream_options'],
    ],
    reasoningIn: 'pieces',
    usageIn: 'last-choice',
  },
  deepseek: { ...ofModels, cachedIn: 'prompt_cache_hit_tokens' },
  xai: { ...PLAIN_VENDOR, refused: [...PLAIN_VENDOR.refused, ...SAMPLING, 'logit_bias', 'max_tokens'], countsReasoningApart: true },
  vllm: ofModels,
  ollama: { ...PLAIN_VENDOR, reasoningIn: 'reasoning' },
  'llama.cpp': { ...ofModels, refused: [...ofModels.refused, 'repetition_penalty'] },
};
