import { describe, expect, it } from 'vitest';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { type Answer, addPart, emptyAnswer, finishReasonOf } from '../answer.ts';
import { toCompletion } from './completion.ts';

const head = { id: 'gen-1', created: 7, model: 'a/one', provider: 'East' };
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const call: ProviderPart = { type: 'tool-call-start', index: 0, id: 'call_1', name: 'f' };

function answerOf(...parts: ProviderPart[]): Answer {
  const answer = emptyAnswer();
  for (const part of parts) addPart(answer, part);
  return answer;
}

describe('the whole answer', () => {
  it('has what came before a failure, and the error', () => {
    const error = { code: 502, message: 'broke', type: 'provider_unavailable', param: '' };
    expect(toCompletion(answerOf({ type: 'text-delta', text: 'half' }), head, usage, error).choices[0]).toMatchObject({
      finish_reason: 'error',
      error,
      message: { content: 'half' },
    });
  });

  it('has system_fingerprint, and no empty tool_calls, reasoning or error', () => {
    expect(toCompletion(answerOf({ type: 'text-delta', text: 'hi' }, { type: 'finish', reason: 'stop', nativeReason: 'eos' }), head, usage)).toEqual({
      ...head,
      object: 'chat.completion',
      system_fingerprint: null,
      choices: [{ index: 0, finish_reason: 'stop', native_finish_reason: 'eos', logprobs: null, message: { role: 'assistant', content: 'hi', refusal: null } }],
      usage,
    });
  });

  it('has no content when it only calls tools, or refuses', () => {
    expect(toCompletion(answerOf(call), head, usage).choices[0]?.message).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }],
    });
    expect(toCompletion(answerOf({ type: 'refusal-delta', text: 'no' }), head, usage).choices[0]?.message).toMatchObject({ content: null, refusal: 'no' });
  });

  it('has its reasoning in the contract’s field and in the one that clients read', () => {
    const details = [{ type: 'reasoning.text', text: 'hm', index: 0, format: 'unknown' }];
    expect(toCompletion(answerOf({ type: 'reasoning-delta', text: 'hm' }), head, usage).choices[0]).toMatchObject({
      reasoning_details: details,
      message: { reasoning: 'hm', reasoning_details: details },
    });
  });

  it('joins the logprobs of its pieces', () => {
    const token = (name: string) => ({ token: name, logprob: -1, bytes: null, top_logprobs: [] });
    const piece = (name: string): ProviderPart => ({ type: 'text-delta', text: name, logprobs: { content: [token(name)], refusal: null } });
    expect(answerOf(piece('a'), piece('b')).logprobs).toEqual({ content: [token('a'), token('b')], refusal: null });
  });

  it.each([
    ['stop', 'tool_calls'],
    ['tool_calls', 'tool_calls'],
    ['length', 'length'],
    ['content_filter', 'content_filter'],
  ] as const)('that called tools and ended with %s ends with %s: a call that was cut off is not to be made', (reason, expected) => {
    expect(finishReasonOf(answerOf(call, { type: 'finish', reason, nativeReason: reason }))).toBe(expected);
  });
});
