/**
 * What the price data lack: which models are listed and in which order, what they take, and what their providers do with data. Facts of vendors'
 * documentation.
 *
 * @typedef {object} ModelCorrection
 * @property {number} [context]
 * @property {number} [completion] most completion tokens
 * @property {readonly string[]} [modalities] beside text
 * @property {readonly string[]} [parameters]
 * @property {number} [dimensions] of a model of vectors
 * @property {boolean} [shortens] whether its vectors may have fewer
 * @property {string} [name]
 */

/**
 * @typedef {object} ProviderCorrection
 * @property {string} from its id in the price data
 * @property {string} name
 * @property {{ trains: boolean, retains: boolean }} [data_policy]
 * @property {string} privacy_policy_url
 * @property {string} terms_of_service_url
 * @property {string} [status_page_url]
 * @property {ModelCorrection} all of models that say nothing else
 * @property {Readonly<Record<string, ModelCorrection>>} models
 */

const TOKENS = ['max_completion_tokens', 'max_tokens'];
const TOOLS = ['parallel_tool_calls', 'tool_choice', 'tools'];
const FORMATS = ['response_format', 'structured_outputs'];
const COMMON = [...TOKENS, ...TOOLS, ...FORMATS, 'stop', 'temperature', 'top_p'];
const PENALTIES = ['frequency_penalty', 'presence_penalty'];
const LOGPROBS = ['logprobs', 'top_logprobs'];
const REASONING = ['reasoning', 'reasoning_effort'];

const OF_OPENAI = [...TOKENS, ...TOOLS, ...FORMATS, 'function_call', 'functions', 'prediction', 'seed', 'service_tier', 'store'];
const OPENAI_CHAT = [...OF_OPENAI, ...PENALTIES, ...LOGPROBS, 'audio', 'logit_bias', 'modalities', 'stop', 'temperature', 'top_p', 'web_search_options'];
/** Without sampling. */
const OPENAI_THINKING = [...OF_OPENAI, ...REASONING, 'verbosity'];
/** Sampling is taken while they do not think. */
const OPENAI_NEWER = [...OPENAI_THINKING, ...LOGPROBS, 'stop', 'temperature', 'top_p'];

const newer = { parameters: OPENAI_NEWER };
const thinking = { parameters: OPENAI_THINKING };
const chat = (/** @type {number} */ completion) => ({ parameters: OPENAI_CHAT, completion });

const RETAINED = { trains: false, retains: true };

/** @type {{ date: string, providers: Readonly<Record<string, ProviderCorrection>>, shared: Readonly<Record<string, readonly string[]>> }} */
export const corrections = {
  /** Of the pinned version of the price data. */
  date: '2026-09-23',
  providers: {
    openai: {
      from: 'openai',
      name: 'OpenAI',
      data_policy: RETAINED,
      privacy_policy_url: 'https://openai.com/policies/privacy-policy/',
      terms_of_service_url: 'https://openai.com/policies/services-agreement/',
      status_page_url: 'https://status.openai.com/',
      all: { completion: 128_000, modalities: ['image', 'file'] },
      models: {
        'gpt-5-mini': thinking,
        'gpt-5': thinking,
        'gpt-5-nano': thinking,
        'gpt-5.1': newer,
        'gpt-5.2': newer,
        'gpt-5.4': newer,
        'gpt-5.4-mini': newer,
        'gpt-5.4-nano': newer,
        'gpt-5.5': newer,
        'gpt-5.6-sol': newer,
        'gpt-5.6-terra': newer,
        'gpt-5.6-luna': newer,
        'gpt-6-sol': newer,
        'gpt-6-luna': newer,
        'gpt-6-astra': newer,
        'gpt-4.1': chat(32_768),
        'gpt-4.1-mini': chat(32_768),
        'gpt-4.1-nano': chat(32_768),
        'gpt-4o': chat(16_384),
        'gpt-4o-mini': chat(16_384),
        o3: { parameters: OPENAI_THINKING.filter((name) => name !== 'verbosity'), completion: 100_000 },
        'o4-mini': { parameters: OPENAI_THINKING.filter((name) => name !== 'verbosity'), completion: 100_000 },
        'text-embedding-3-small': { dimensions: 1_536 },
        'text-embedding-3-large': { dimensions: 3_072 },
      },
    },
    anthropic: {
      from: 'anthropic',
      name: 'Anthropic',
      data_policy: RETAINED,
      privacy_policy_url: 'https://www.anthropic.com/legal/privacy',
      terms_of_service_url: 'https://www.anthropic.com/legal/commercial-terms',
      status_page_url: 'https://status.claude.com/',
      all: { completion: 128_000, modalities: ['image', 'file'], parameters: [...COMMON, ...REASONING, 'service_tier', 'top_k', 'verbosity'] },
      models: {
        'claude-sonnet-5-5': { name: 'Claude Sonnet 5.5', context: 1_000_000 },
        'claude-opus-5-5': {},
        'claude-haiku-5-5': { name: 'Claude Haiku 5.5' },
        'claude-fable-5-1': {},
        'claude-sonnet-5': {},
        'claude-opus-5': {},
        'claude-opus-4-5': { completion: 64_000 },
        'claude-sonnet-4-5': { completion: 64_000 },
        'claude-haiku-4-5': { completion: 64_000 },
      },
    },
    google: {
      from: 'google',
      name: 'Google',
      privacy_policy_url: 'https://policies.google.com/privacy',
      terms_of_service_url: 'https://ai.google.dev/gemini-api/terms',
      status_page_url: 'https://aistudio.google.com/status',
      all: {
        completion: 65_536,
        modalities: ['image', 'audio', 'video', 'file'],
        parameters: [...COMMON, ...PENALTIES, ...LOGPROBS, ...REASONING, 'modalities', 'seed', 'top_k'],
      },
      models: {
        'gemini-3.8-flash': {},
        'gemini-3.5-flash': {},
        'gemini-3.5-flash-lite': {},
        'gemini-3.1-pro-preview': {},
        'gemini-2.5-pro': {},
        'gemini-2.5-flash': {},
        'gemini-2.5-flash-lite': {},
        'gemini-embedding-001': { dimensions: 3_072, context: 2_048 },
      },
    },
    groq: {
      from: 'groq',
      name: 'Groq',
      data_policy: RETAINED,
      privacy_policy_url: 'https://groq.com/privacy-policy',
      terms_of_service_url: 'https://groq.com/terms-of-use',
      status_page_url: 'https://groqstatus.com/',
      all: { context: 131_072, modalities: [], parameters: [...COMMON, ...PENALTIES, ...REASONING, 'seed', 'service_tier'] },
      models: {
        'openai/gpt-oss-120b': { completion: 65_536 },
        'openai/gpt-oss-20b': { completion: 65_536 },
        'llama-3.3-70b-versatile': { name: 'Llama 3.3 70B', completion: 32_768 },
        'llama-3.1-8b-instant': { name: 'Llama 3.1 8B', completion: 131_072 },
        'meta-llama/llama-4-scout-17b-16e-instruct': { completion: 8_192, modalities: ['image'] },
        'meta-llama/llama-4-maverick-17b-128e-instruct': { completion: 8_192, modalities: ['image'] },
        'qwen/qwen3-32b': { completion: 40_960 },
        'moonshotai/kimi-k2-instruct': { completion: 16_384 },
      },
    },
    together: {
      from: 'together',
      name: 'Together AI',
      privacy_policy_url: 'https://www.together.ai/privacy',
      terms_of_service_url: 'https://www.together.ai/terms-of-service',
      status_page_url: 'https://status.together.ai/',
      all: { modalities: [], parameters: [...COMMON, ...PENALTIES, 'logit_bias', 'min_p', 'repetition_penalty', 'seed', 'top_k'] },
      models: {
        'meta-llama/Llama-3.3-70B-Instruct-Turbo': { name: 'Llama 3.3 70B', context: 131_072 },
        'meta-llama/Llama-4-Scout-17B-16E-Instruct': { name: 'Llama 4 Scout', context: 1_048_576, modalities: ['image'] },
        'meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8': { name: 'Llama 4 Maverick', context: 1_048_576, modalities: ['image'] },
      },
    },
    mistral: {
      from: 'mistral',
      name: 'Mistral',
      privacy_policy_url: 'https://legal.mistral.ai/terms/privacy-policy',
      terms_of_service_url: 'https://legal.mistral.ai/terms/commercial-terms-of-service',
      status_page_url: 'https://status.mistral.ai/',
      all: { modalities: ['image'], parameters: [...COMMON, ...PENALTIES, ...REASONING, 'prediction', 'seed'] },
      models: {
        'mistral-medium-latest': { name: 'Mistral Medium', context: 131_072 },
        'mistral-large-2512': {},
        'mistral-small-2603': {},
        'ministral-8b-2512': {},
        'codestral-2508': { modalities: [] },
        'devstral-2512': { modalities: [] },
        'mistral-embed': { dimensions: 1_024, shortens: false },
      },
    },
    deepseek: {
      from: 'deepseek',
      name: 'DeepSeek',
      data_policy: { trains: true, retains: true },
      privacy_policy_url: 'https://cdn.deepseek.com/policies/en-US/deepseek-privacy-policy.html',
      terms_of_service_url: 'https://cdn.deepseek.com/policies/en-US/deepseek-open-platform-terms-of-service.html',
      status_page_url: 'https://status.deepseek.com/',
      all: { modalities: [], parameters: [...COMMON, ...PENALTIES, ...LOGPROBS, ...REASONING] },
      models: { 'deepseek-v4-flash': {}, 'deepseek-v4-pro': {} },
    },
    xai: {
      from: 'x-ai',
      name: 'xAI',
      data_policy: RETAINED,
      privacy_policy_url: 'https://x.ai/legal/privacy-policy',
      terms_of_service_url: 'https://x.ai/legal/terms-of-service-enterprise',
      status_page_url: 'https://status.x.ai/',
      all: { modalities: ['image'], parameters: [...COMMON, ...PENALTIES, ...LOGPROBS, ...REASONING, 'seed'] },
      models: {
        'grok-4.6': {},
        'grok-4.5': {},
        'grok-4.3': {},
        'grok-4-1-fast-reasoning': {},
        'grok-4-1-fast-non-reasoning': {},
        'grok-code-fast-1': { modalities: [] },
      },
    },
  },
  /** The same weights at several providers. */
  shared: {
    'meta-llama/llama-3.3-70b-instruct': ['groq/llama-3.3-70b-versatile', 'together/meta-llama/Llama-3.3-70B-Instruct-Turbo'],
    'meta-llama/llama-4-scout': ['groq/meta-llama/llama-4-scout-17b-16e-instruct', 'together/meta-llama/Llama-4-Scout-17B-16E-Instruct'],
    'meta-llama/llama-4-maverick': ['groq/meta-llama/llama-4-maverick-17b-128e-instruct', 'together/meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8'],
  },
};
