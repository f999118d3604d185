/** Answers of an upstream with every field, as OpenRouter and OpenAI send them, and what clients are to make of them. */
const head = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_763_700_000,
  model: 'upstream-model',
  system_fingerprint: 'fp_1',
  service_tier: 'default',
};

function chunk(delta: object, more: object = {}): object {
  return { ...head, choices: [{ index: 0, delta, finish_reason: null, logprobs: null, ...more }], usage: null };
}

const usage = {
  prompt_tokens: 20,
  completion_tokens: 12,
  total_tokens: 32,
  prompt_tokens_details: { cached_tokens: 5, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 4, audio_tokens: 0, accepted_prediction_tokens: 1, rejected_prediction_tokens: 2 },
};

const end = (reason: string) => [chunk({}, { finish_reason: reason }), { ...head, choices: [], usage }];
const role = chunk({ role: 'assistant', content: '' });
const thinking = { type: 'reasoning.text', index: 0, format: 'anthropic-claude-v1' };

export const SIGNATURE = 'c2lnbmF0dXJl';
export const IMAGE = 'data:image/png;base64,iVBORw0KGgo=';
export const SOURCE = {
  type: 'url_citation',
  url_citation: { url: 'https://weather.test/paris', title: 'Weather', start_index: 0, end_index: 11, content: 'sunny' },
};

/** Reasoning with its signature, text in three pieces, a source and an image. */
export const richAnswer: readonly object[] = [
  role,
  chunk({ reasoning: 'Let me ', reasoning_details: [{ ...thinking, text: 'Let me ' }] }),
  chunk({ reasoning: 'see.', reasoning_details: [{ ...thinking, text: 'see.' }] }),
  chunk({ reasoning_details: [{ ...thinking, signature: SIGNATURE }] }),
  ...['It ', 'is ', 'sunny.'].map((content) => chunk({ content })),
  chunk({ annotations: [SOURCE] }),
  chunk({ images: [{ type: 'image_url', index: 0, image_url: { url: IMAGE } }] }),
  ...end('stop'),
];
export const TEXT = 'It is sunny.';
export const REASONING = 'Let me see.';
/** Of the whole answer. */
export const DETAILS = [{ ...thinking, text: REASONING, signature: SIGNATURE }];

/** Two calls of tools behind a text. The upstream ends with `stop`. */
export const toolAnswer: readonly object[] = [
  role,
  chunk({ content: 'I look.' }),
  chunk({ tool_calls: [{ index: 0, id: 'call_a', type: 'function', function: { name: 'look', arguments: '' } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '{"at":' } }] }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: '"sky"}' } }] }),
  chunk({ tool_calls: [{ index: 1, id: 'call_b', type: 'function', function: { name: 'listen', arguments: '' } }] }),
  ...end('stop'),
];

/** Text, then an error inside the stream. */
export const brokenAnswer: readonly object[] = [
  role,
  chunk({ content: 'Half an ' }),
  { error: { message: 'the engine broke', type: 'server_error', code: 500 } },
];

/** An error before any content. */
export const refusal = {
  status: 429,
  body: { error: { message: 'slow down', type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded' } },
  headers: { 'retry-after': '7' },
};

const token = (text: string) => ({ token: text, logprob: -0.5, bytes: [...Buffer.from(text)], top_logprobs: [] });

export const refusedAnswer: readonly object[] = [
  role,
  chunk({ refusal: 'I ' }, { logprobs: { content: null, refusal: [token('I ')] } }),
  chunk({ refusal: "can't." }, { logprobs: { content: null, refusal: [token("can't.")] } }),
  ...end('content_filter'),
];

export const loudAnswer: readonly object[] = [
  role,
  chunk({ audio: { id: 'audio_1', transcript: 'Good ' } }),
  chunk({ audio: { data: Buffer.from('on').toString('base64') } }),
  chunk({ audio: { data: Buffer.from('e').toString('base64'), transcript: 'day' } }),
  chunk({ audio: { expires_at: 1_763_800_000 } }),
  ...end('stop'),
];

export const weatherTool = {
  type: 'function' as const,
  function: { name: 'look', description: 'Looks at something', parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] } },
};
