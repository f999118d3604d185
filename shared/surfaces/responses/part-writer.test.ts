import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../../contracts/router/chat-request.ts';
import type { ProviderPart } from '../../contracts/router/provider-part.ts';
import { addPart, emptyAnswer } from '../answer.ts';
import type { AnswerHead } from '../surface.ts';
import { EventWriter } from './part-writer.ts';
import { responses } from './surface.ts';
import { readEvents } from './test-support/read-events.ts';

const request: ChatRequest = { messages: [{ role: 'user', content: 'Hi' }] };
const head: AnswerHead = { id: 'gen-g1-abc', created: 7, model: 'a/one', provider: 'East', request, now: () => 9 };
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, is_byok: false as const };
const text = (it: string): ProviderPart => ({ type: 'text-delta', text: it });
const thinking = { index: 0, id: null, format: 'anthropic-claude-v1' };
const end = (reason: 'stop' | 'length' | 'content_filter'): ProviderPart => ({ type: 'finish', reason, nativeReason: reason });
const failure = { error: { code: 502, message: 'broke', type: 'provider_unavailable', param: '', metadata: { error_type: 'provider_unavailable' } } };

function begun(about: Partial<AnswerHead> = {}) {
  const answer = emptyAnswer();
  const writer = new EventWriter({ ...head, ...about }, answer);
  const add = (...parts: ProviderPart[]) => {
    for (const part of parts) addPart(answer, part);
    return writer.parts(parts);
  };
  return { answer, writer, add, done: () => writer.done(answer, usage) };
}

/** Of one part per batch. */
function streamed(...parts: ProviderPart[]) {
  const { answer, add, done } = begun();
  const events = readEvents(`${parts.map((part) => add(part)).join('')}${done()}`);
  return { events, answer, types: events.map(({ type }) => type) };
}

describe('the events of a response', () => {
  it('begin with response.created, are numbered from 0 without a gap, and close what they open', () => {
    const { events, types } = streamed(text('It '), text('is.'), end('stop'));
    expect(types).toEqual([
      ...['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added'],
      ...['response.output_text.delta', 'response.output_text.delta', 'response.output_text.done', 'response.content_part.done'],
      ...['response.output_item.done', 'response.completed'],
    ]);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    expect(events[0]).toMatchObject({ response: { id: 'gen-g1-abc', status: 'in_progress', output: [], usage: null, completed_at: null } });
    expect(events[4]).toMatchObject({ item_id: 'msg_g1-abc', output_index: 0, content_index: 0, delta: 'It ', logprobs: [] });
    expect(events.at(-1)).toMatchObject({
      response: {
        ...{ status: 'completed', created_at: 7, completed_at: 9, model: 'a/one', output_text: 'It is.', error: null, incomplete_details: null },
        output: [{ type: 'message', status: 'completed', content: [{ type: 'output_text', text: 'It is.', annotations: [], logprobs: [] }] }],
        usage: {
          input_tokens: 3,
          output_tokens: 2,
          total_tokens: 5,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens_details: { reasoning_tokens: 0 },
        },
      },
    });
  });

  it('close reasoning before what follows it, and keep its signature for the way back', () => {
    const { events, types } = streamed(
      { type: 'reasoning-delta', text: 'Let me ', block: thinking },
      { type: 'reasoning-delta', text: 'see.', block: thinking },
      { type: 'reasoning-signature', signature: 'sig', block: thinking },
      text('Yes.'),
      end('stop'),
    );
    expect(types.slice(2, 9)).toEqual([
      ...['response.output_item.added', 'response.content_part.added', 'response.reasoning_text.delta', 'response.reasoning_text.delta'],
      ...['response.reasoning_text.done', 'response.content_part.done', 'response.output_item.done'],
    ]);
    const item = {
      type: 'reasoning',
      summary: [],
      content: [{ type: 'reasoning_text', text: 'Let me see.' }],
      signature: 'sig',
      format: 'anthropic-claude-v1',
    };
    expect(events[8]).toMatchObject({ output_index: 0, item: { ...item, status: 'completed' } });
    expect(events.at(-1)).toMatchObject({ response: { output: [item, { type: 'message' }] } });
  });

  it('have the summary of a block, its encrypted content, and the id that the upstream gave it', () => {
    const block = { index: 0, id: 'rs_up', format: 'openai-responses-v1' };
    const { events, types } = streamed(
      { type: 'reasoning-summary-delta', text: 'In short.', block },
      { type: 'reasoning-encrypted', data: 'enc', block },
      text('Yes.'),
      end('stop'),
    );
    expect(types.slice(3, 7)).toEqual([
      ...['response.reasoning_summary_part.added', 'response.reasoning_summary_text.delta'],
      ...['response.reasoning_summary_text.done', 'response.reasoning_summary_part.done'],
    ]);
    expect(events[3]).toMatchObject({ item_id: 'rs_up', output_index: 0, summary_index: 0, part: { type: 'summary_text', text: '' } });
    expect(events[7]).toMatchObject({ item: { id: 'rs_up', summary: [{ text: 'In short.' }], content: [], encrypted_content: 'enc' } });
  });

  it('keep calls of tools apart, also when their pieces come in turn, and name them at their end', () => {
    const start = (index: number): ProviderPart => ({ type: 'tool-call-start', index, id: `call_${index}`, name: `tool_${index}` });
    const piece = (index: number, it: string): ProviderPart => ({ type: 'tool-call-delta', index, arguments: it });
    const { events } = streamed(text('I look.'), start(0), start(1), piece(0, '{"a"'), piece(1, '{}'), piece(0, ':1}'), end('stop'));
    const closed = events.filter(({ type }) => type === 'response.function_call_arguments.done');
    expect(closed).toMatchObject([
      { output_index: 1, name: 'tool_0', arguments: '{"a":1}' },
      { output_index: 2, name: 'tool_1', arguments: '{}' },
    ]);
    expect(events.at(-1)).toMatchObject({
      response: {
        status: 'completed',
        output: [{ type: 'message' }, { type: 'function_call', call_id: 'call_0', arguments: '{"a":1}' }, { call_id: 'call_1' }],
      },
    });
  });

  it('have refusals, sources and images', () => {
    const source = { type: 'url_citation' as const, url_citation: { url: 'https://a.test', title: 'A', start_index: 0, end_index: 2 } };
    const { events, types } = streamed(
      text('It is.'),
      { type: 'annotation', annotation: source },
      { type: 'refusal-delta', text: 'No.' },
      { type: 'image', url: 'data:image/png;base64,AAAA' },
      end('content_filter'),
    );
    expect(types).toContain('response.refusal.delta');
    expect(events.find(({ type }) => type === 'response.output_text.annotation.added')).toMatchObject({
      ...{ item_id: 'msg_g1-abc', output_index: 0, content_index: 0, annotation_index: 0 },
      annotation: { type: 'url_citation', url: 'https://a.test', title: 'A', start_index: 0, end_index: 2 },
    });
    expect(events.at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: {
        incomplete_details: { reason: 'content_filter' },
        output: [
          {
            status: 'incomplete',
            content: [
              { text: 'It is.', annotations: [{ url: 'https://a.test' }] },
              { type: 'refusal', refusal: 'No.' },
            ],
          },
          { type: 'image_generation_call', result: 'AAAA', status: 'completed' },
        ],
      },
    });
  });

  it('have the bytes of each token that has log probabilities', () => {
    const logprobs = { content: [{ token: 'é', logprob: -1, bytes: null, top_logprobs: [] }], refusal: null };
    const { events } = streamed({ type: 'text-delta', text: 'é', logprobs }, end('stop'));
    expect(events[4]).toMatchObject({ logprobs: [{ token: 'é', logprob: -1, bytes: [195, 169], top_logprobs: [] }] });
  });

  it('are an empty response where the model said nothing', () => {
    expect(streamed(end('stop'))).toMatchObject({ types: ['response.created', 'response.in_progress', 'response.completed'] });
  });

  it('end with max_output_tokens where the answer was too long', () => {
    expect(streamed(text('a'), end('length')).events.at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', completed_at: null, incomplete_details: { reason: 'max_output_tokens' } },
    });
  });
});

describe('a text in the template', () => {
  it('is the event that would have been written whole, with its number', () => {
    const { writer, add, done } = begun();
    const first = add(text('It '));
    const { prefix, suffix } = writer.template;
    const between = writer.text([text('is "é"\n')]);
    const events = readEvents(`${first}${prefix}${between}${suffix}${done()}`);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    expect(events[5]).toEqual({
      ...{ type: 'response.output_text.delta', item_id: 'msg_g1-abc', output_index: 0, content_index: 0, logprobs: [] },
      ...{ sequence_number: 5, delta: 'is "é"\n' },
    });
    expect(events.at(-1)).toMatchObject({ response: { output_text: 'It is "é"\n' } });
  });

  it('fits also when reasoning stated it, once its message is there', () => {
    const { writer, add } = begun();
    add({ type: 'reasoning-delta', text: 'Hm.' });
    expect(writer.template.prefix).toContain('"output_index":1,');
    expect(writer.text([text('a')])).toBeNull();
    add(text('a'));
    expect(writer.text([text('b')])).toBe('11,"delta":"b"');
  });

  it('does not fit when another item has its place, nor behind reasoning that is open', () => {
    const { writer, add } = begun();
    add({ type: 'reasoning-delta', text: 'Hm.' });
    void writer.template;
    add({ type: 'tool-call-start', index: 0, id: 'call_1', name: 'look' });
    add(text('a'));
    expect(writer.text([text('b')])).toBeNull();

    const other = begun();
    other.add(text('a'));
    void other.writer.template;
    other.add({ type: 'reasoning-delta', text: 'Hm.' });
    expect(other.writer.text([text('b')])).toBeNull();
  });
});

describe('a failure behind content', () => {
  it('closes the items, and states the whole response with its error', () => {
    const { writer, add } = begun();
    const events = readEvents(`${add(text('Half'))}${writer.failed(failure, usage)}`);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    expect(events.at(-1)).toMatchObject({
      ...{ type: 'response.failed', error_type: 'provider_unavailable' },
      response: {
        ...{ status: 'failed', error: { code: 'server_error', message: 'broke' }, error_type: 'provider_unavailable', output_text: 'Half' },
        ...{ output: [{ status: 'incomplete' }], usage: { input_tokens: 3 } },
      },
    });
    expect(events.at(-1)).not.toHaveProperty('error');
  });

  it('is a whole stream when nothing was written before', () => {
    const { writer } = begun();
    expect(readEvents(writer.failed(failure, null)).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress', 'response.failed']);
  });

  it('is response.error where the router is set up so', () => {
    const { writer, add } = begun({ failures: 'response.error' });
    const events = readEvents(`${add(text('Half'))}${writer.failed(failure, usage)}`);
    expect(events.at(-1)).toEqual({ type: 'response.error', sequence_number: events.length - 1, error: { code: 'server_error', message: 'broke' } });
  });

  it.each([
    ['rate_limit_exceeded', 'rate_limit_exceeded'],
    ['context_length_exceeded', 'invalid_prompt'],
    ['invalid_request', 'invalid_prompt'],
    ['content_policy_violation', 'image_content_policy_violation'],
    ['timeout', 'server_error'],
    ['server', 'server_error'],
  ])('%s is %s', (type, code) => {
    const events = readEvents(begun().writer.failed({ error: { ...failure.error, type } }, null));
    expect(events.at(-1)).toMatchObject({ response: { error: { code }, error_type: type } });
  });

  it('of the gateway is an event in both forms, numbered by what was sent', () => {
    expect(readEvents(responses.errorEvent(failure, head, 12))).toEqual([
      {
        ...{ type: 'error', code: 'server_error', message: 'broke', param: null, sequence_number: 12, error_type: 'provider_unavailable' },
        error: { code: 'server_error', message: 'broke' },
      },
    ]);
    expect(readEvents(responses.errorEvent(failure, { ...head, failures: 'response.error' }, 12))).toEqual([
      { type: 'response.error', sequence_number: 12, error: { code: 'server_error', message: 'broke' } },
    ]);
  });
});

it.each([
  ['context_length_exceeded', undefined],
  ['max_tokens_exceeded', undefined],
  ['token_limit_exceeded', undefined],
  ['string_too_long', undefined],
  ['invalid_request', 'context_length_exceeded'],
  ['invalid_request', 'max_tokens_exceeded'],
  ['invalid_request', 'token_limit_exceeded'],
  ['invalid_request', 'string_too_long'],
])('an error of the type %s, of the provider %s, ends for length', (type, provider_code) => {
  const error = { ...failure.error, type, metadata: { error_type: type, ...(provider_code !== undefined && { provider_code }) } };
  expect(responses.endsForLength?.(error)).toBe(true);
  expect(responses.endsForLength?.(failure.error)).toBe(false);
});
