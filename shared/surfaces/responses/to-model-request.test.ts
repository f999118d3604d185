import { describe, expect, it } from 'vitest';
import { chatRequest } from '../../contracts/router/chat-request.ts';
import { type ResponsesRequest, responsesRequest } from '../../contracts/router/responses-request.ts';
import type { SwitchyardError } from '../../errors/switchyard-error.ts';
import { statedIn } from './response-of.ts';
import { ignoredNames, toModelRequest } from './to-model-request.ts';

const parsed = (fields: object): ResponsesRequest => responsesRequest.parse({ input: 'Hi', ...fields });

/** Valid as a chat, too: a worker reads it as one. */
function modelRequestOf(fields: object) {
  const request = toModelRequest(parsed(fields));
  expect(chatRequest.safeParse(request)).toEqual({ success: true, data: request });
  return request;
}

const messagesOf = (input: unknown, more: object = {}) => modelRequestOf({ input, ...more }).messages;
const statedOf = (fields: object): Record<string, unknown> => JSON.parse(statedIn(modelRequestOf(fields)));

function refusalOf(fields: object): { param: unknown; message: string } {
  try {
    toModelRequest(parsed(fields));
  } catch (error) {
    const { details, message } = error as SwitchyardError;
    return { param: details['param'], message };
  }
  throw new Error('nothing was refused');
}

describe('the conversation', () => {
  it('is a text, behind the instructions', () => {
    expect(messagesOf('Hi')).toEqual([{ role: 'user', content: 'Hi' }]);
    expect(messagesOf('Hi', { instructions: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ]);
  });

  it('keeps instructions apart from a first message of the system, and says which of them there were', () => {
    const input = [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'Hi' },
    ];
    expect(messagesOf(input)[0]).toEqual({ role: 'developer', content: 'Be kind.' });
    expect(statedOf({ input })['instructions']).toBeNull();
    expect(messagesOf(input, { instructions: 'Be brief.' }).slice(0, 2)).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'system', content: 'Be kind.' },
    ]);
    expect(statedOf({ input, instructions: 'Be brief.' })['instructions']).toBe('Be brief.');
  });

  it('has texts, pictures, files, sound and video as a chat has them', () => {
    const content = [
      { type: 'input_text', text: 'Look' },
      { type: 'input_image', image_url: 'https://a.test/a.png', detail: 'low' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA' },
      { type: 'input_file', file_url: 'https://a.test/a.pdf' },
      { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
      { type: 'input_video', video_url: 'https://a.test/a.mp4' },
    ];
    expect(messagesOf([{ role: 'user', content }])).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look' },
          { type: 'image_url', image_url: { url: 'https://a.test/a.png', detail: 'low' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA' } },
          { type: 'file', file: { file_data: 'https://a.test/a.pdf' } },
          { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
          { type: 'video_url', video_url: { url: 'https://a.test/a.mp4' } },
        ],
      },
    ]);
  });

  it('has the items of one answer as one message, before the outputs of its tools', () => {
    const input = [
      { role: 'user', content: 'Look' },
      { type: 'reasoning', id: 'rs_up', summary: [{ type: 'summary_text', text: 'Hm.' }], encrypted_content: 'enc' },
      { type: 'message', role: 'assistant', id: 'msg_1', status: 'completed', content: [{ type: 'output_text', text: 'I look.', annotations: [] }] },
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"at":1}' },
      { type: 'function_call', call_id: 'call_2', name: 'listen', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'sky' },
      { type: 'function_call_output', call_id: 'call_2', output: [{ type: 'input_text', text: 'wind' }] },
    ];
    const called = (id: string, name: string, text: string) => ({ id, type: 'function', function: { name, arguments: text } });
    expect(messagesOf(input)).toEqual([
      { role: 'user', content: 'Look' },
      {
        role: 'assistant',
        content: 'I look.',
        reasoning_details: [
          { type: 'reasoning.summary', summary: 'Hm.', id: 'rs_up', index: 0, format: 'openai-responses-v1' },
          { type: 'reasoning.encrypted', data: 'enc', id: 'rs_up', index: 0, format: 'openai-responses-v1' },
        ],
        tool_calls: [called('call_1', 'look', '{"at":1}'), called('call_2', 'listen', '{}')],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'sky' },
      { role: 'tool', tool_call_id: 'call_2', content: [{ type: 'text', text: 'wind' }] },
    ]);
  });

  it('sends reasoning back in the dialect that it came from, without ids that are ours', () => {
    const thought = { type: 'reasoning', id: 'rs_gen_abc_0', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }], signature: 'sig' };
    expect(
      messagesOf([
        { ...thought, format: 'anthropic-claude-v1' },
        { role: 'assistant', content: 'Yes.' },
      ]),
    ).toEqual([
      {
        role: 'assistant',
        content: 'Yes.',
        reasoning_details: [{ type: 'reasoning.text', text: 'Hm.', signature: 'sig', index: 0, format: 'anthropic-claude-v1' }],
      },
    ]);
  });

  it('keeps two answers in a row apart, drops reasoning that nothing followed, and records of what the service did', () => {
    const answers = [
      { role: 'assistant', content: 'One.' },
      { type: 'web_search_call', id: 'ws_1', status: 'completed' },
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      { role: 'user', content: 'So?' },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      { role: 'user', content: 'And?' },
    ];
    expect(messagesOf(answers)).toEqual([
      { role: 'assistant', content: 'One.' },
      { role: 'assistant', content: null, refusal: 'No.' },
      { role: 'user', content: 'So?' },
      { role: 'user', content: 'And?' },
    ]);
  });

  it.each([
    ['an item of the store', [{ type: 'item_reference', id: 'msg_1' }], 'input[0]', /stateless/],
    ['a picture of the store', [{ role: 'user', content: [{ type: 'input_image', file_id: 'file_1' }] }], 'input[0].content[0].image_url', /required/],
    ['an empty file', [{ role: 'user', content: [{ type: 'input_file', filename: 'a' }] }], 'input[0].content[0]', /file_data/],
    ['a picture of the system', [{ role: 'system', content: [{ type: 'input_image', image_url: 'x' }] }], 'input[0].content[0]', /text/],
    ['reasoning alone', [{ type: 'reasoning', summary: [] }], 'input', /nothing/],
  ])('refuses %s with its path', (_, input, param, message) => {
    expect(refusalOf({ input })).toEqual({ param, message: expect.stringMatching(message) });
  });
});

describe('tools', () => {
  const look = { type: 'function', name: 'look', description: 'Looks', parameters: { type: 'object' }, strict: true };
  const listen = { type: 'function', name: 'listen', parameters: null, strict: null };

  it('are flat here and nested there, and stated flat again', () => {
    const nested = { type: 'function', function: { name: 'look', description: 'Looks', parameters: { type: 'object' }, strict: true } };
    const request = modelRequestOf({ tools: [look, listen], tool_choice: { type: 'function', name: 'look' } });
    expect(request).toMatchObject({
      tools: [nested, { type: 'function', function: { name: 'listen' } }],
      tool_choice: { type: 'function', function: { name: 'look' } },
    });
    expect(JSON.parse(statedIn(request))).toMatchObject({
      tools: [look, { type: 'function', name: 'listen', description: null, parameters: null, strict: null }],
      tool_choice: { type: 'function', name: 'look' },
    });
  });

  it('are those that tool_choice allows', () => {
    const choice = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'listen' }] };
    expect(modelRequestOf({ tools: [look, listen], tool_choice: choice })).toMatchObject({
      tools: [{ function: { name: 'listen' } }],
      tool_choice: 'required',
    });
  });

  it('of web search are the plugin, once', () => {
    expect(modelRequestOf({ tools: [{ type: 'web_search_preview' }] })).toMatchObject({ plugins: [{ id: 'web' }] });
    const limits = { filters: { allowed_domains: ['a.example'] }, user_location: { type: 'approximate', city: 'Bern' } };
    expect(modelRequestOf({ tools: [{ type: 'web_search', ...limits }] }).plugins).toEqual([
      { id: 'web', include_domains: ['a.example'], user_location: limits.user_location },
    ]);
    expect(modelRequestOf({ tools: [{ type: 'web_search' }], plugins: [{ id: 'web', max_results: 3 }] }).plugins).toEqual([{ id: 'web', max_results: 3 }]);
  });
});

describe('parameters', () => {
  it('have the names of a chat', () => {
    const format = { type: 'json_schema', name: 'a', schema: { type: 'object' }, strict: true };
    const fields = {
      ...{ model: 'a/one', models: ['a/two'], max_output_tokens: 20, temperature: 0.5, top_p: 0.9, top_k: 3, presence_penalty: 1, frequency_penalty: -1 },
      ...{ top_logprobs: 2, reasoning: { effort: 'low', summary: 'auto', max_tokens: 100 }, text: { format, verbosity: 'low' }, parallel_tool_calls: false },
      ...{
        metadata: { a: 'b' },
        user: 'u',
        session_id: 's',
        service_tier: 'flex',
        prompt_cache_key: 'k',
        safety_identifier: 'i',
        stream: true,
        route: 'fallback',
      },
    };
    const { text: _, max_output_tokens: __, ...same } = fields;
    expect(modelRequestOf(fields)).toEqual({
      ...same,
      messages: [{ role: 'user', content: 'Hi' }],
      max_tokens: 20,
      logprobs: true,
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' }, strict: true } },
      verbosity: 'low',
    });
    expect(statedOf(fields)).toMatchObject({
      text: { format, verbosity: 'low' },
      reasoning: { effort: 'low', summary: 'auto' },
      max_output_tokens: 20,
      user: 'u',
    });
  });

  it('that are null are those that are absent', () => {
    const empty = { instructions: null, metadata: null, user: null, tools: null, tool_choice: null, text: null, reasoning: null, include: null, plugins: null };
    expect(modelRequestOf({ ...empty, max_output_tokens: null, temperature: null, previous_response_id: null })).toEqual({
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(statedOf(empty)).toMatchObject({ reasoning: null, metadata: null, text: { format: { type: 'text' } }, top_logprobs: 0, tool_choice: 'auto' });
  });

  it('asks for log probabilities also by include', () => {
    expect(modelRequestOf({ include: ['message.output_text.logprobs'] })).toMatchObject({ logprobs: true, top_logprobs: 0 });
  });

  it('names what has no effect', () => {
    const fields = {
      debug: { echo_upstream_body: true },
      max_tool_calls: 3,
      truncation: 'auto',
      include: ['file_search_call.results'],
      newer: 1,
      store: false,
    };
    expect(ignoredNames(parsed(fields))).toEqual(['max_tool_calls', 'include', 'truncation', 'debug', 'newer']);
    expect(ignoredNames(parsed({ truncation: 'disabled', include: ['reasoning.encrypted_content'], previous_response_id: null }))).toEqual([]);
    expect(modelRequestOf(fields)).not.toHaveProperty('debug');
  });
});
