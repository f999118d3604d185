import { describe, expect, it } from 'vitest';
import { type EmbeddingRequest, embeddingRequest } from '../../contracts/router/embedding-request.ts';
import { addPart, emptyAnswer, hasContent } from '../answer.ts';
import { embeddings } from './surface.ts';
import { toEmbeddingCall, toModelRequest } from './to-model-request.ts';

const head = { id: 'gen-1', created: 7, model: 'a/vectors', provider: 'East', request: { messages: [] }, now: () => 8 };
const usage = { prompt_tokens: 3, completion_tokens: 0, total_tokens: 3, prompt_tokens_details: { cached_tokens: 0 }, is_byok: false as const };

function answered() {
  const answer = emptyAnswer();
  addPart(answer, { type: 'vectors', vectors: ['[1,0.5]'] });
  addPart(answer, { type: 'vectors', vectors: ['"AACAPw=="', '[3]'] });
  return answer;
}

describe('the body', () => {
  it('has the vectors in order, and of the usage what clients of this API know', () => {
    expect(JSON.parse(embeddings.wholeBody(answered(), head, usage))).toEqual({
      ...{ object: 'list', id: 'gen-1', model: 'a/vectors', provider: 'East' },
      data: [[1, 0.5], 'AACAPw==', [3]].map((embedding, index) => ({ object: 'embedding', index, embedding })),
      usage: { prompt_tokens: 3, total_tokens: 3, is_byok: false },
    });
  });

  it('is the last event of a stream, whose vectors are no content before', () => {
    const answer = answered();
    const writer = embeddings.partWriter(head, answer);
    expect([hasContent(answer), writer.parts([{ type: 'vectors', vectors: ['[1]'] }])]).toEqual([false, '']);
    expect(writer.done(answer, usage)).toBe(`data: ${embeddings.wholeBody(answer, head, usage)}\n\n`);
  });
});

describe('a request', () => {
  const parsed = (input: unknown): EmbeddingRequest => embeddingRequest.parse({ model: 'a/vectors', input, provider: null, user: null });
  const item = { type: 'text' as const, text: 'Hello' };

  it.each([
    ['one text', 'Hello', ['Hello'], null],
    ['texts', ['a', 'b'], ['a', 'b'], null],
    ['content', [{ content: [item] }], [[item]], null],
    ['token ids', [1, 2], [''], [[1, 2]]],
    ['lists of token ids', [[1, 2], [3]], [''], [[1, 2], [3]]],
  ])('has %s as messages, or as token ids beside one', (_, input, contents, tokens) => {
    const request = parsed(input);
    expect(toModelRequest(request)).toEqual({ model: 'a/vectors', messages: contents.map((content) => ({ role: 'user', content })) });
    expect(toEmbeddingCall(request)).toEqual({ format: 'float', dimensions: null, inputType: null, tokens });
  });

  it('asks for moderation at its place, and for no other plugin', () => {
    const named = (plugins: object[]) => embeddingRequest.parse({ model: 'a/vectors', input: 'Hello', plugins });
    const request = named([{ id: 'web', max_results: 3 }, { id: 'moderation' }, { id: 'new', enabled: false }]);
    expect(toModelRequest(request).plugins).toEqual([{ id: 'web', enabled: false }, { id: 'moderation' }, { id: 'new', enabled: false }]);
    expect(embeddings.request?.ignoredPlugins?.(request)).toEqual([{ at: 0, id: 'web' }]);
    expect(toModelRequest(named([{ id: 'web' }]))).not.toHaveProperty('plugins');
  });
});
