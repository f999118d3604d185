import { ChatResult$inboundSchema, ChatStreamChunk$inboundSchema } from '@openrouter/sdk/models';
import fc from 'fast-check';
import { ChatResponse$inboundSchema, ChatStreamingResponseChunkData$inboundSchema } from 'openrouter-sdk-0.3/models';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { usageDetailsOf } from '../../services/router-worker/call/usage-details.ts';
import type { Usage } from '../../shared/contracts/router/chat-completion.ts';
import type { ProviderPart, ProviderUsage } from '../../shared/contracts/router/provider-part.ts';
import { addPart, emptyAnswer } from '../../shared/surfaces/answer.ts';
import { toCompletion } from '../../shared/surfaces/chat-completions/completion.ts';
import { ChunkWriter } from '../../shared/surfaces/chat-completions/part-writer.ts';

const head = { id: 'gen-1', created: 7, model: 'a/one', provider: 'East' };
const text = fc.string({ minLength: 1, maxLength: 6 });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const block = fc.record({ index: fc.nat({ max: 3 }), id: optional(text), format: fc.constantFrom('unknown', 'anthropic-claude-v1', 'one-that-is-newer') });
const alone = { token: text, logprob: fc.double({ max: 0, min: -9 }), bytes: optional(fc.array(fc.nat({ max: 255 }), { maxLength: 3 })) };
const token = fc.record({ ...alone, top_logprobs: fc.array(fc.record(alone), { maxLength: 1 }) });
const logprobs = fc.record({ content: optional(fc.array(token, { maxLength: 2 })), refusal: optional(fc.array(token, { maxLength: 2 })) });
const base64 = fc.uint8Array({ minLength: 1, maxLength: 5 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const citation = fc.record({ url: fc.webUrl(), title: text, start_index: fc.nat(), end_index: fc.nat() }, { requiredKeys: ['url', 'title'] });

const part: fc.Arbitrary<ProviderPart> = fc.oneof(
  fc.record({ type: fc.constant('text-delta' as const), text, logprobs }, { requiredKeys: ['type', 'text'] }),
  fc.record({ type: fc.constant('reasoning-delta' as const), text, block }, { requiredKeys: ['type', 'text'] }),
  fc.record({ type: fc.constant('reasoning-summary-delta' as const), text, block }),
  fc.record({ type: fc.constant('reasoning-signature' as const), signature: text, block }),
  fc.record({ type: fc.constant('reasoning-encrypted' as const), data: text, block }),
  fc.record({ type: fc.constant('refusal-delta' as const), text, logprobs }, { requiredKeys: ['type', 'text'] }),
  fc.record({ type: fc.constant('annotation' as const), annotation: citation.map((cited) => ({ type: 'url_citation' as const, url_citation: cited })) }),
  fc.record({ type: fc.constant('image' as const), url: fc.webUrl() }),
  fc.record(
    { type: fc.constant('audio-delta' as const), id: fc.constant('audio_1'), data: optional(base64), transcript: optional(text), expiresAt: fc.nat() },
    { requiredKeys: ['type', 'id', 'data', 'transcript'] },
  ),
  fc.record({ type: fc.constant('response-metadata' as const), id: optional(text), systemFingerprint: optional(text), serviceTier: optional(text) }),
  fc.record({ type: fc.constant('server-tool-call' as const), id: text, name: text, arguments: fc.constant('{}') }),
);
const calls = fc
  .array(fc.record({ id: text, name: text, pieces: fc.array(text, { maxLength: 2 }) }), { maxLength: 2 })
  .map((list) =>
    list.flatMap(({ id, name, pieces }, index): ProviderPart[] => [
      { type: 'tool-call-start', index, id, name },
      ...pieces.map((piece): ProviderPart => ({ type: 'tool-call-delta', index, arguments: piece })),
    ]),
  );
const count = fc.nat({ max: 9_999 });
const providerUsage: fc.Arbitrary<ProviderUsage> = fc.record(
  {
    promptTokens: count,
    completionTokens: count,
    cachedTokens: count,
    reasoningTokens: count,
    cacheWriteTokens: count,
    promptAudioTokens: count,
    promptVideoTokens: count,
    completionAudioTokens: count,
    completionImageTokens: count,
    acceptedPredictionTokens: count,
    rejectedPredictionTokens: count,
  },
  { requiredKeys: ['promptTokens', 'completionTokens', 'cachedTokens', 'reasoningTokens'] },
);
const finish = fc
  .constantFrom('stop', 'length', 'tool_calls', 'content_filter')
  .map((reason): ProviderPart => ({ type: 'finish', reason: reason as 'stop', nativeReason: reason }));
const given = fc.record({
  batches: fc.array(fc.array(part, { maxLength: 3 }), { maxLength: 6 }),
  calls,
  finish,
  used: providerUsage,
});

/** Only what is compared; the clients' schemas check the rest. */
const read = z.object({
  choices: z.array(
    z.object({
      delta: z.object({
        content: z.string().default(''),
        reasoning: z.string().default(''),
        refusal: z.string().default(''),
        tool_calls: z.array(z.object({ index: z.number(), function: z.object({ arguments: z.string() }) })).default([]),
        annotations: z.array(z.unknown()).default([]),
        images: z.array(z.unknown()).default([]),
        audio: z.object({ data: z.string().default(''), transcript: z.string().default('') }).default({ data: '', transcript: '' }),
      }),
    }),
  ),
});

function written(batches: readonly (readonly ProviderPart[])[], usage: Usage) {
  const answer = emptyAnswer();
  const writer = new ChunkWriter(head, answer);
  let events = '';
  for (const batch of batches) {
    for (const one of batch) addPart(answer, one);
    events += writer.parts(batch);
  }
  events += writer.done(answer, usage);
  const data = events.split('\n\n').filter((event) => event !== '');
  expect(data.pop()).toBe('data: [DONE]');
  return { chunks: data.map((event): unknown => JSON.parse(event.slice('data: '.length))), whole: toCompletion(answer, head, usage) };
}

/** DESIGN 8: whatever an upstream says, the answer and every chunk of it are what the clients' schemas accept, and both say the same. */
it('any answer, whole and in chunks, passes the schemas of @openrouter/sdk 0.3 and 1.3, and both say the same', () => {
  fc.assert(
    fc.property(given, ({ batches, calls: called, finish: end, used }) => {
      const total = { prompt_tokens: used.promptTokens, completion_tokens: used.completionTokens, total_tokens: used.promptTokens + used.completionTokens };
      const usage: Usage = { ...total, ...usageDetailsOf(used) };
      const { chunks, whole } = written([...batches, called, [end]], usage);
      for (const chunk of chunks) {
        expect(ChatStreamChunk$inboundSchema.safeParse(chunk).error).toBeUndefined();
        expect(ChatStreamingResponseChunkData$inboundSchema.safeParse(chunk).error).toBeUndefined();
      }
      expect(ChatResult$inboundSchema.safeParse(whole).error).toBeUndefined();
      expect(ChatResponse$inboundSchema.safeParse(whole).error).toBeUndefined();

      const deltas = chunks.flatMap((chunk) => read.parse(chunk).choices.map(({ delta }) => delta));
      const message = whole.choices[0]?.message;
      const audio = deltas.map((delta) => delta.audio);
      const stated = {
        content: deltas.map((delta) => delta.content).join(''),
        reasoning: deltas.map((delta) => delta.reasoning).join(''),
        refusal: deltas.map((delta) => delta.refusal).join(''),
        annotations: deltas.flatMap((delta) => delta.annotations),
        images: deltas.flatMap((delta) => delta.images),
        data: Buffer.concat(audio.map(({ data }) => Buffer.from(data, 'base64'))).toString('base64'),
        transcript: audio.map(({ transcript }) => transcript).join(''),
        calls: deltas.flatMap((delta) => delta.tool_calls.map((fragment) => fragment.function.arguments)).join(''),
      };
      expect(stated).toEqual({
        content: message?.content ?? '',
        reasoning: message?.reasoning ?? '',
        refusal: message?.refusal ?? '',
        annotations: message?.annotations ?? [],
        images: message?.images ?? [],
        data: message?.audio?.data ?? '',
        transcript: message?.audio?.transcript ?? '',
        calls: (message?.tool_calls ?? []).map((call) => call.function.arguments).join(''),
      });
    }),
    { numRuns: 500 },
  );
});
