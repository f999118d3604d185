import { ChatResult$inboundSchema, ChatStreamChunk$inboundSchema } from '@openrouter/sdk/models';
import fc from 'fast-check';
import { ChatResponse$inboundSchema, ChatStreamingResponseChunkData$inboundSchema } from 'openrouter-sdk-0.3/models';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { usageDetailsOf } from '../../services/router-worker/call/usage-details.ts';
import type { Usage } from '../../shared/contracts/router/chat-completion.ts';
import type { ProviderPart } from '../../shared/contracts/router/provider-part.ts';
import { addPart, emptyAnswer } from '../../shared/surfaces/answer.ts';
import { toCompletion } from '../../shared/surfaces/chat-completions/completion.ts';
import { ChunkWriter } from '../../shared/surfaces/chat-completions/part-writer.ts';
import { anyAnswer } from './any-answer.ts';

const head = { id: 'gen-1', created: 7, model: 'a/one', provider: 'East' };
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
    fc.property(anyAnswer, ({ batches, calls: called, finish: end, used }) => {
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
