import { describe, expect, it } from 'vitest';
import type { ChatCompletion, ReasoningDetail } from '../../contracts/router/chat-completion.ts';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { addPart, charsOf, emptyAnswer, hasContent } from '../answer.ts';
import { toCompletion } from './completion.ts';
import { ChunkWriter } from './part-writer.ts';

const head = { id: 'gen-1', created: 7, model: 'a/one', provider: 'East' };
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const thinking = { index: 0, id: null, format: 'anthropic-claude-v1' };
const redacted = { ...thinking, index: 1 };
const summed = { index: 2, id: 'rs_1', format: 'openai-responses-v1' };
const source = (url: string) => ({ type: 'url_citation' as const, url_citation: { url, title: 'A page', start_index: 0, end_index: 2 } });

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** As a vendor with blocks sends it. */
const parts: ProviderPart[] = [
  { type: 'reasoning-delta', text: 'first ', block: thinking },
  { type: 'reasoning-delta', text: 'second', block: thinking },
  { type: 'reasoning-signature', signature: 'sig', block: thinking },
  { type: 'reasoning-encrypted', data: 'xyz', block: redacted },
  { type: 'reasoning-summary-delta', text: 'in short', block: summed },
  { type: 'reasoning-encrypted', data: 'enc', block: summed },
  { type: 'text-delta', text: 'It is so.', block: { index: 3, id: null } },
  { type: 'annotation', annotation: source('https://a.test') },
  { type: 'annotation', annotation: source('https://b.test') },
  { type: 'image', url: 'data:image/png;base64,AAAA' },
  { type: 'audio-delta', id: 'audio_1', data: base64('on'), transcript: 'It' },
  { type: 'audio-delta', id: 'audio_1', data: base64('two!'), transcript: null },
  { type: 'audio-delta', id: 'audio_1', data: null, transcript: ' is.', expiresAt: 1_700_000_000 },
];
const unstated: ProviderPart[] = [
  { type: 'response-metadata', id: 'up_1', systemFingerprint: 'fp_1', serviceTier: 'flex' },
  { type: 'server-tool-call', id: 'srv_1', name: 'web_search', arguments: '{}' },
  { type: 'server-tool-result', id: 'srv_1', name: 'web_search', result: [] },
];
const details: ReasoningDetail[] = [
  { type: 'reasoning.text', text: 'first second', signature: 'sig', index: 0, format: 'anthropic-claude-v1' },
  { type: 'reasoning.encrypted', data: 'xyz', index: 1, format: 'anthropic-claude-v1' },
  { type: 'reasoning.summary', summary: 'in short', id: 'rs_1', index: 2, format: 'openai-responses-v1' },
  { type: 'reasoning.encrypted', data: 'enc', id: 'rs_1', index: 2, format: 'openai-responses-v1' },
];

function messageOf(given: readonly ProviderPart[]): ChatCompletion['choices'][number]['message'] | undefined {
  const answer = emptyAnswer();
  for (const part of given) addPart(answer, part);
  return toCompletion(answer, head, usage).choices[0]?.message;
}

function deltasOf(given: readonly ProviderPart[]): Record<string, unknown>[] {
  const events = new ChunkWriter(head, emptyAnswer()).parts(given).split('\n\n').filter(Boolean);
  return events.map((event) => JSON.parse(event.slice('data: '.length)).choices[0].delta);
}

describe('an answer in blocks', () => {
  it('has, whole, a detail per block of reasoning, its sources and its images', () => {
    expect(messageOf(parts)).toEqual({
      role: 'assistant',
      content: 'It is so.',
      refusal: null,
      reasoning: 'first secondin short',
      reasoning_details: details,
      annotations: [source('https://a.test'), source('https://b.test')],
      images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
      audio: { id: 'audio_1', data: base64('ontwo!'), transcript: 'It is.', expires_at: 1_700_000_000 },
    });
  });

  it('has, in chunks, one delta per part, with the detail of its block', () => {
    expect(deltasOf(parts)).toEqual([
      { role: 'assistant', content: '' },
      { reasoning: 'first ', reasoning_details: [{ type: 'reasoning.text', text: 'first ', index: 0, format: 'anthropic-claude-v1' }] },
      { reasoning: 'second', reasoning_details: [{ type: 'reasoning.text', text: 'second', index: 0, format: 'anthropic-claude-v1' }] },
      { reasoning_details: [{ type: 'reasoning.text', signature: 'sig', index: 0, format: 'anthropic-claude-v1' }] },
      { reasoning_details: [details[1]] },
      { reasoning: 'in short', reasoning_details: [details[2]] },
      { reasoning_details: [details[3]] },
      { content: 'It is so.' },
      { annotations: [source('https://a.test')] },
      { annotations: [source('https://b.test')] },
      { images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
      { audio: { id: 'audio_1', data: base64('on'), transcript: 'It' } },
      { audio: { id: 'audio_1', data: base64('two!') } },
      { audio: { id: 'audio_1', transcript: ' is.', expires_at: 1_700_000_000 } },
    ]);
  });

  it('has no chunk and no content for what the API has no field for', () => {
    const answer = emptyAnswer();
    for (const part of unstated) addPart(answer, part);
    expect(unstated.map(charsOf)).toEqual([0, 0, 0]);
    expect(hasContent(answer)).toBe(false);
    expect(deltasOf(unstated)).toEqual([]);
  });

  it.each(parts)('has content with $type alone, also when it is not retained', (part) => {
    const answer = emptyAnswer(false);
    addPart(answer, part);
    expect(charsOf(part)).toBeGreaterThan(0);
    expect(hasContent(answer)).toBe(true);
    expect(answer).toMatchObject({ text: '', reasoning: '', reasoningPieces: null, annotations: null, images: null, audio: null });
  });

  it('has no content of its own where it is sound alone', () => {
    expect(messageOf([{ type: 'audio-delta', id: 'audio_1', data: 'AAAA', transcript: null }])).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
      audio: { id: 'audio_1', data: 'AAAA' },
    });
  });

  it('keeps the order of reasoning with and without blocks', () => {
    const plain: ProviderPart = { type: 'reasoning-delta', text: 'plain ' };
    expect(messageOf([plain, { type: 'reasoning-encrypted', data: 'xyz', block: redacted }, { ...plain, text: 'again' }])?.reasoning_details).toEqual([
      { type: 'reasoning.text', text: 'plain again', index: 0, format: 'unknown' },
      { type: 'reasoning.encrypted', data: 'xyz', index: 1, format: 'anthropic-claude-v1' },
    ]);
  });
});

describe('what an upstream says of the whole answer', () => {
  const metadata: ProviderPart = { type: 'response-metadata', id: 'up_1', systemFingerprint: 'fp "1"', serviceTier: 'flex' };
  const text: ProviderPart = { type: 'text-delta', text: 'a' };
  const finish: ProviderPart = { type: 'finish', reason: 'stop', nativeReason: 'stop' };

  /** The chunks of batches, as the worker writes them. */
  function chunksOf(...batches: ProviderPart[][]): Record<string, unknown>[] {
    const answer = emptyAnswer(false);
    const writer = new ChunkWriter(head, answer);
    const events = batches.map((batch) => {
      for (const part of batch) addPart(answer, part);
      return writer.parts(batch);
    });
    const all = `${events.join('')}${writer.done(answer, usage)}`.split('\n\n').filter((event) => event !== '' && event !== 'data: [DONE]');
    return all.map((event) => JSON.parse(event.slice('data: '.length)));
  }

  it('is in a whole answer, whose fingerprint is null where there is none', () => {
    const answer = emptyAnswer();
    addPart(answer, text);
    expect(toCompletion(answer, head, usage)).toMatchObject({ system_fingerprint: null });
    expect(toCompletion(answer, head, usage)).not.toHaveProperty('service_tier');
    addPart(answer, metadata);
    expect(toCompletion(answer, head, usage)).toMatchObject({ system_fingerprint: 'fp "1"', service_tier: 'flex' });
  });

  it('is in every chunk when it came with or before the first content', () => {
    for (const chunks of [chunksOf([metadata], [text, finish]), chunksOf([text, metadata], [text], [finish])]) {
      expect(chunks.length).toBeGreaterThan(3);
      for (const chunk of chunks) expect(chunk).toMatchObject({ system_fingerprint: 'fp "1"', service_tier: 'flex' });
    }
  });

  it('is in the last chunks when it came later, and absent, never null, in the others', () => {
    const chunks = chunksOf([text], [metadata, finish]);
    expect(chunks.map((chunk) => [chunk.system_fingerprint, chunk.service_tier])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
      ['fp "1"', 'flex'],
      ['fp "1"', 'flex'],
    ]);
    for (const chunk of chunksOf([text, finish])) expect(Object.keys(chunk)).not.toContain('system_fingerprint');
  });

  it('is bounded, since each chunk repeats it, and a later null erases nothing', () => {
    const answer = emptyAnswer();
    addPart(answer, { type: 'response-metadata', id: null, systemFingerprint: 'x'.repeat(1_000), serviceTier: 'flex' });
    addPart(answer, { type: 'response-metadata', id: 'up_1', systemFingerprint: null, serviceTier: null });
    expect(answer.metadata).toEqual({ id: 'up_1', systemFingerprint: 'x'.repeat(256), serviceTier: 'flex' });
  });
});
