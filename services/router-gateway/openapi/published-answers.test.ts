import { expect, it } from 'vitest';
import type { z } from 'zod';
import { chatCompletionAnswer, embeddingsAnswer, responseAnswer } from '#shared/contracts/router/answers.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { ProviderPart } from '#shared/contracts/router/provider-part.ts';
import { strict } from '#shared/http-server/test-support/check-answers.ts';
import { addPart, emptyAnswer } from '#shared/surfaces/answer.ts';
import { surfaces } from '#shared/surfaces/surfaces.ts';

const head = { id: 'gen-1', created: 7, model: 'a/one', provider: 'East', request: { messages: [] }, now: () => 8 };
const usage = {
  ...{
    prompt_tokens: 3,
    completion_tokens: 2,
    total_tokens: 5,
    prompt_tokens_details: { cached_tokens: 1 },
    completion_tokens_details: { reasoning_tokens: 1 },
  },
  ...{ cost: 0.5, is_byok: false as const },
  cost_details: { upstream_inference_cost: null, upstream_inference_prompt_cost: 0.25, upstream_inference_completions_cost: 0.25 },
};
const parts: ProviderPart[] = [
  { type: 'text-delta', text: 'Half' },
  { type: 'tool-call-start', index: 0, id: 'call_1', name: 'find' },
  { type: 'finish', reason: 'tool_calls', nativeReason: 'tool_use' },
];
const error = { code: 502, message: 'broke', type: 'provider_unavailable', param: '' };

it.each<[string, z.ZodType, ProviderPart[]]>([
  ['chat-completions', chatCompletionAnswer, parts],
  ['responses', responseAnswer, parts],
  ['embeddings', embeddingsAnswer, [{ type: 'vectors', vectors: ['[1,0.5]'] }]],
])('an answer of %s is as published, whole and cut off by an error', (name, schema, given) => {
  const surface = surfaces.get(name) ?? expect.fail('no such surface');
  const answer = emptyAnswer();
  for (const part of given) addPart(answer, part);
  // Vectors come whole or not at all.
  const bodies = [surface.wholeBody(answer, head, usage), ...(name === 'embeddings' ? [] : [surface.wholeBody(answer, head, usage, error)])];
  for (const body of bodies) expect(strict(schema).safeParse(JSON.parse(body)).error?.message).toBeUndefined();
});

it.each<[string, Partial<ChatRequest>]>([
  ['a schema', { response_format: { type: 'json_schema', json_schema: { name: 'a', description: 'b', schema: {}, strict: true } }, verbosity: 'low' }],
  ['JSON', { response_format: { type: 'json_object' }, tool_choice: 'required', parallel_tool_calls: false, temperature: 0.5, top_logprobs: 2 }],
  ['a grammar', { response_format: { type: 'grammar', grammar: 'g' }, reasoning: { effort: 'low', summary: 'auto' }, max_tokens: 3, user: 'u' }],
  [
    'a function',
    {
      tools: [{ type: 'function', function: { name: 'find', description: 'Finds', parameters: {}, strict: false } }],
      tool_choice: { type: 'function', function: { name: 'find' } },
      metadata: { a: 'b' },
    },
  ],
])('a response repeats what its request stated, as published: %s', (_, stated) => {
  const answer = emptyAnswer();
  for (const part of parts) addPart(answer, { ...part });
  const body = surfaces.get('responses')?.wholeBody(answer, { ...head, request: { messages: [], ...stated } }, usage) ?? expect.fail('no such surface');
  expect(strict(responseAnswer).safeParse(JSON.parse(body)).error?.message).toBeUndefined();
});
