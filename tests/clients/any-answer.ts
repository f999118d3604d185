import fc from 'fast-check';
import type { ProviderPart, ProviderUsage } from '../../shared/contracts/router/provider-part.ts';

const text = fc.string({ minLength: 1, maxLength: 6 });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: null });
const block = fc.record({ index: fc.nat({ max: 3 }), id: optional(text), format: fc.constantFrom('unknown', 'anthropic-claude-v1', 'one-that-is-newer') });
const alone = { token: text, logprob: fc.double({ max: 0, min: -9, noNaN: true }), bytes: optional(fc.array(fc.nat({ max: 255 }), { maxLength: 3 })) };
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
/** What was read from a file is stated with the end. */
export const readFile: ProviderPart = {
  type: 'annotation',
  annotation: { type: 'file', file: { hash: 'c0ffee', name: 'a.pdf', content: [{ type: 'text', text: 'of the file' }] } },
};
const finish = fc
  .constantFrom('stop', 'length', 'tool_calls', 'content_filter')
  .map((reason): ProviderPart => ({ type: 'finish', reason: reason as 'stop', nativeReason: reason }));
/** What an upstream may say: batches of parts, then calls of tools, then the end. */
export const anyAnswer = fc.record({
  batches: fc.array(fc.array(part, { maxLength: 3 }), { maxLength: 6 }),
  calls,
  finish,
  used: providerUsage,
});
