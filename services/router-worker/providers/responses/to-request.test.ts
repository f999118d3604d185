import { describe, expect, it } from 'vitest';
import type { ChatMessage, ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { toRequest } from './to-request.ts';

const hello: ChatMessage = { role: 'user', content: 'hi' };
const bodyOf = (request: Partial<ChatRequest>, refused: readonly string[] = []) =>
  toRequest({ model: 'gpt-5', request: { messages: [hello], ...request } }, new Set(refused));
const call = (id: string, text = '{}') => ({ id, type: 'function' as const, function: { name: 'look', arguments: text } });

describe('the request to POST /responses', () => {
  it('is streamed, stored nowhere, and asks for reasoning that can be sent back', () => {
    expect(bodyOf({ stream: false, n: 2, stop: 'x', seed: 1, session_id: 's', temperature: null })).toEqual({
      model: 'gpt-5',
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }],
      include: ['reasoning.encrypted_content'],
      store: false,
      stream: true,
    });
  });

  it('has instructions, texts, files, calls and results as items, in their order', () => {
    const content = [
      { type: 'text' as const, text: 'see' },
      { type: 'image_url' as const, image_url: { url: 'https://files.test/a.png', detail: 'low' as const } },
      { type: 'file' as const, file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' } },
      { type: 'file' as const, file: { file_data: 'https://files.test/a.pdf' } },
    ];
    const messages: ChatMessage[] = [
      { role: 'system', content: 'be kind' },
      { role: 'user', name: 'Ann', content },
      { role: 'assistant', content: 'I look.', tool_calls: [call('a', ''), call('b')] },
      { role: 'tool', tool_call_id: 'a', content: 'one' },
      { role: 'tool', tool_call_id: 'b', content: [{ type: 'text', text: 'two' }] },
      { role: 'assistant', refusal: 'no' },
    ];
    expect(bodyOf({ messages }).input).toEqual([
      { role: 'developer', content: [{ type: 'input_text', text: 'be kind' }] },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Ann: see' },
          { type: 'input_image', image_url: 'https://files.test/a.png', detail: 'low' },
          { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' },
          { type: 'input_file', file_url: 'https://files.test/a.pdf' },
        ],
      },
      { role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
      { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
      { type: 'function_call', call_id: 'b', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output: 'one' },
      { type: 'function_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'two' }] },
      { role: 'assistant', content: [{ type: 'output_text', text: 'no' }] },
    ]);
    expect(() => bodyOf({ messages: [{ role: 'user', content: [{ type: 'video_url' }] }] })).toThrow(
      expect.objectContaining({ code: 'router.provider_refused', details: { param: 'messages[0].content[0]' } }),
    );
  });

  it('returns encrypted reasoning before what followed from it, and no other', () => {
    const format = 'openai-responses-v1';
    const details = [
      { type: 'reasoning.summary', summary: 'let me ', id: 'rs_1', index: 0, format },
      { type: 'reasoning.summary', summary: 'see', id: 'rs_1', index: 0, format },
      { type: 'reasoning.encrypted', data: 'e1', id: 'rs_1', index: 0, format },
      { type: 'reasoning.summary', summary: 'not encrypted', id: 'rs_2', index: 1, format },
      { type: 'reasoning.encrypted', data: 'foreign', id: 'x', format: 'google-gemini-v1' },
      { type: 'reasoning.encrypted', data: 'e2', index: 3, format },
    ];
    const { input } = bodyOf({ messages: [hello, { role: 'assistant', content: 'so', reasoning_details: details }] });
    expect(input).toEqual([
      expect.anything(),
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'let me see' }], encrypted_content: 'e1' },
      { type: 'reasoning', summary: [], encrypted_content: 'e2' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'so' }] },
    ]);
  });

  it('has tools with an explicit strictness, and a format', () => {
    const parameters = { type: 'object', properties: {} };
    const body = bodyOf({
      tools: [
        { type: 'function', function: { name: 'look', parameters, strict: true } },
        { type: 'function', function: { name: 'wait', description: 'Waits.' } },
      ],
      tool_choice: { type: 'function', function: { name: 'look' } },
      parallel_tool_calls: false,
      response_format: { type: 'json_schema', json_schema: { name: 'a', schema: parameters } },
      verbosity: 'low',
      max_tokens: 50,
      logprobs: true,
      top_logprobs: 2,
    });
    expect(body).toMatchObject({
      tools: [
        { type: 'function', name: 'look', parameters, strict: true },
        { type: 'function', name: 'wait', description: 'Waits.', parameters, strict: false },
      ],
      tool_choice: { type: 'function', name: 'look' },
      parallel_tool_calls: false,
      text: { verbosity: 'low', format: { type: 'json_schema', name: 'a', schema: parameters, strict: false } },
      max_output_tokens: 50,
      include: ['reasoning.encrypted_content', 'message.output_text.logprobs'],
      top_logprobs: 2,
    });
    expect(bodyOf({ tools: [], tool_choice: 'auto' })).toEqual(bodyOf({}));
    expect(bodyOf({ temperature: 1 }, ['temperature', 'include'])).not.toHaveProperty('include');
  });

  it.each([
    [{ effort: 'high' as const }, { effort: 'high', summary: 'auto' }],
    [
      { effort: 'low' as const, summary: 'detailed' as const },
      { effort: 'low', summary: 'detailed' },
    ],
    [{ effort: 'high' as const, exclude: true }, { effort: 'high' }],
    [{ enabled: false }, { effort: 'none' }],
    [{ max_tokens: 500 }, { effort: 'medium', summary: 'auto' }],
    [{ summary: 'concise' as const }, { summary: 'concise' }],
    [{}, undefined],
  ])('maps reasoning %o to %o', (reasoning, expected) => {
    expect(bodyOf({ reasoning, max_tokens: 1_000 }).reasoning).toEqual(expected);
  });
});
