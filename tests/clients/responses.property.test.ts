import { OpenResponsesResult$inboundSchema, StreamEvents$inboundSchema } from '@openrouter/sdk/models';
import fc from 'fast-check';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { OpenResponsesNonStreamingResponse$inboundSchema, OpenResponsesStreamEvent$inboundSchema } from 'openrouter-sdk-0.3/models';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { usageDetailsOf } from '../../services/router-worker/call/usage-details.ts';
import type { Usage } from '../../shared/contracts/router/chat-completion.ts';
import type { ProviderPart } from '../../shared/contracts/router/provider-part.ts';
import { addPart, emptyAnswer } from '../../shared/surfaces/answer.ts';
import { toCompletion } from '../../shared/surfaces/chat-completions/completion.ts';
import { filesIn } from '../../shared/surfaces/responses/files-in.ts';
import { responses } from '../../shared/surfaces/responses/surface.ts';
import { readEvents } from '../../shared/surfaces/responses/test-support/read-events.ts';
import { anyAnswer, readFile } from './any-answer.ts';

const head = { id: 'gen-g1-1', created: 7, model: 'a/one', provider: 'East', request: { messages: [] }, now: () => 9 };

/** Texts go through the template as soon as they fit it, as on their way. */
function written(batches: readonly (readonly ProviderPart[])[], usage: Usage) {
  const answer = emptyAnswer();
  const writer = responses.partWriter(head, answer);
  let template: { prefix: string; suffix: string } | null = null;
  let sse = '';
  for (const batch of batches) {
    for (const one of batch) addPart(answer, one);
    const text = template === null || batch.length === 0 ? null : writer.text(batch);
    if (text !== null && template !== null) {
      sse += `${template.prefix}${text}${template.suffix}`;
      continue;
    }
    const events = writer.parts(batch);
    if (events !== '') template ??= writer.template;
    sse += events;
  }
  const whole: unknown = JSON.parse(responses.wholeBody(answer, head, usage));
  return { events: readEvents(`${sse}${writer.done(answer, usage)}`), whole, completion: toCompletion(answer, head, usage) };
}

const said = z.object({
  status: z.string(),
  output_text: z.string(),
  usage: z.unknown(),
  output: z.array(
    z.looseObject({
      type: z.string(),
      content: z
        .array(
          z.looseObject({
            type: z.string(),
            refusal: z.string().optional(),
            annotations: z.array(z.looseObject({ type: z.string(), url: z.string().optional() })).optional(),
          }),
        )
        .optional(),
    }),
  ),
});

/** What of an answer chats and responses have in common. */
function contentOf(response: unknown) {
  const { output, output_text, status, usage } = said.parse(response);
  const parts = output.flatMap((item) => (item.type === 'message' ? (item.content ?? []) : []));
  return {
    ...{ status, usage, text: output_text },
    refusal: parts.map(({ refusal = '' }) => refusal).join(''),
    sources: parts.flatMap(({ annotations = [] }) => annotations.flatMap(({ url }) => url ?? [])),
    files: parts.flatMap(({ annotations = [] }) => annotations.filter(({ type }) => type === 'file_citation')),
    calls: output.filter(({ type }) => type === 'function_call').map(({ call_id, name, arguments: text }) => ({ call_id, name, text })),
    images: output.filter(({ type }) => type === 'image_generation_call').map(({ result }) => result),
  };
}

it('DESIGN 8: any answer passes the schemas of @openrouter/sdk 0.3 and 1.3 and the accumulator of openai, and says what its completion says', () => {
  fc.assert(
    fc.property(anyAnswer, ({ batches, calls, finish, used }) => {
      const total = { prompt_tokens: used.promptTokens, completion_tokens: used.completionTokens, total_tokens: used.promptTokens + used.completionTokens };
      const usage: Usage = { ...total, ...usageDetailsOf(used) };
      const { events, whole, completion } = written([...batches, ...calls.map((part) => [part]), [readFile, finish]], usage);
      for (const event of events) {
        expect(StreamEvents$inboundSchema.safeParse(event)).toMatchObject({ success: true, data: { type: event.type } });
        expect(OpenResponsesStreamEvent$inboundSchema.safeParse(event).error).toBeUndefined();
      }
      expect(OpenResponsesResult$inboundSchema.safeParse(whole).error).toBeUndefined();
      expect(OpenResponsesNonStreamingResponse$inboundSchema.safeParse(whole).error).toBeUndefined();

      expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
      const opened = events.filter(({ type }) => type === 'response.output_item.added').map(({ output_index }) => output_index);
      expect(opened).toEqual(opened.map((_, index) => index));
      const closed = events.filter(({ type }) => type === 'response.output_item.done').map(({ output_index }) => output_index);
      expect([...closed].sort((one, other) => Number(one) - Number(other))).toEqual(opened);

      let snapshot: Response | undefined;
      for (const event of events.slice(0, -1)) snapshot = accumulateResponse(event as unknown as ResponseStreamEvent, snapshot);
      const last = events.at(-1)?.['response'];
      expect(snapshot?.output).toEqual(said.parse(last).output);

      const streamed = contentOf(last);
      expect(streamed).toEqual(contentOf(whole));
      const message = completion.choices[0]?.message;
      const hasText = said.parse(whole).output.some(({ content = [] }) => content.some(({ type }) => type === 'output_text'));
      const [cited] = streamed.files;
      expect(cited === undefined ? [] : filesIn([cited])).toEqual(hasText ? (message?.annotations ?? []).filter(({ type }) => type === 'file') : []);
      expect(streamed).toMatchObject({
        text: message?.content ?? '',
        refusal: message?.refusal ?? '',
        sources: (message?.annotations ?? []).flatMap((annotation) => (annotation.type === 'url_citation' ? [annotation.url_citation.url] : [])),
        calls: (message?.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({ call_id: id, name, text })),
        images: (message?.images ?? []).map(({ image_url: { url } }) => url),
        usage: {
          ...{ input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens, total_tokens: usage.total_tokens },
          output_tokens_details: { reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens },
        },
      });
    }),
    { numRuns: 200 },
  );
});
