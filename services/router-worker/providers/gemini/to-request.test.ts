import { describe, expect, it } from 'vitest';
import type { ChatMessage, ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import { ODD_NUMBERS } from '../conformance/under-test.ts';
import { exactJson } from '../exact-numbers.ts';
import { describeError } from './describe-error.ts';
import { toRequest } from './to-request.ts';

const hello: ChatMessage = { role: 'user', content: 'hi' };

function bodyOf(request: Partial<ChatRequest>, { model = 'gemini-2.5-flash', safety = null as string | null, takesCallIds = true } = {}) {
  return toRequest({ model, request: { messages: [hello], ...request } }, { safety, takesCallIds });
}

const contentsOf = (messages: ChatMessage[], options = {}) => bodyOf({ messages }, options).contents;
const call = (id: string, text = '{"at":1}') => ({ id, type: 'function' as const, function: { name: `do_${id}`, arguments: text } });
const calling = (...ids: string[]): ChatMessage => ({ role: 'assistant', content: null, tool_calls: ids.map((id) => call(id)) });
const result = (id: string, content: string): ChatMessage => ({ role: 'tool', tool_call_id: id, content });
const tool = (name: string, fields: object = {}): ChatTool => ({ type: 'function', function: { name, ...fields } });

describe('the arguments of a call and its result', () => {
  const sent = (text: string) =>
    exactJson(contentsOf([hello, { role: 'assistant', content: null, tool_calls: [call('a', text)] }, result('a', text)], { takesCallIds: false }));

  it('are sent with their numbers as they are written', () => {
    expect(sent(ODD_NUMBERS)).toContain(`"args":${ODD_NUMBERS}}`);
    expect(sent(ODD_NUMBERS)).toContain(`"response":${ODD_NUMBERS}}`);
  });

  it.each(['{"id":12345678901234567890', '[12345678901234567890]', '1.0'])('are sent as a text where they are no object (%s)', (text) => {
    expect(sent(text)).toContain(`"args":${JSON.stringify({ arguments: text })}}`);
    expect(sent(text)).toContain(`"response":${JSON.stringify({ output: text })}}`);
  });
});

describe('a conversation', () => {
  it('has the leading instructions apart, and later ones in the user’s turn', () => {
    const body = bodyOf({
      messages: [{ role: 'system', content: 'be kind' }, { role: 'developer', content: 'be brief' }, hello, { role: 'system', content: 'be quick' }],
    });
    expect(body.systemInstruction).toEqual({ parts: [{ text: 'be kind' }, { text: 'be brief' }] });
    expect(body.contents).toEqual([{ role: 'user', parts: [{ text: 'hi' }, { text: 'be quick' }] }]);
    expect(bodyOf({ messages: [{ role: 'system', content: 'say hello' }] })).toEqual({ contents: [{ role: 'user', parts: [{ text: 'say hello' }] }] });
  });

  it('has all results of a turn in one content behind the calls, by the names of their calls', () => {
    const contents = contentsOf([hello, calling('a', 'b'), { role: 'user', content: 'and?' }, result('a', '{"ok":true}'), result('b', '[1]')]);
    expect(contents).toEqual([
      { role: 'user', parts: [{ text: 'hi' }] },
      { role: 'model', parts: [{ functionCall: { id: 'a', name: 'do_a', args: { at: 1 } } }, { functionCall: { id: 'b', name: 'do_b', args: { at: 1 } } }] },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'a', name: 'do_a', response: { ok: true } } },
          { functionResponse: { id: 'b', name: 'do_b', response: { output: '[1]' } } },
        ],
      },
      { role: 'user', parts: [{ text: 'and?' }] },
    ]);
  });

  it('has no ids of calls where the API takes none', () => {
    expect(JSON.stringify(contentsOf([hello, calling('a'), result('a', 'x')], { takesCallIds: false }))).not.toContain('"id"');
  });

  it('begins with the user, drops empty texts, and has names before what was said', () => {
    expect(
      contentsOf([
        { role: 'assistant', content: 'one' },
        { role: 'user', content: '' },
        { role: 'user', name: 'Ann', content: 'hi' },
      ]),
    ).toEqual([
      { role: 'user', parts: [{ text: '.' }] },
      { role: 'model', parts: [{ text: 'one' }] },
      { role: 'user', parts: [{ text: 'Ann: hi' }] },
    ]);
  });

  it('has files as bytes and by address', () => {
    const content = [
      { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,aGk=' } },
      { type: 'input_audio' as const, input_audio: { data: 'aGk=', format: 'wav' } },
      { type: 'video_url' as const, video_url: { url: 'https://www.youtube.com/watch?v=1' } },
      { type: 'file' as const, file: { file_data: 'data:application/pdf;base64,aGk=' } },
    ];
    expect(contentsOf([{ role: 'user', content }])).toEqual([
      {
        role: 'user',
        parts: [
          { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
          { inlineData: { mimeType: 'audio/wav', data: 'aGk=' } },
          { fileData: { fileUri: 'https://www.youtube.com/watch?v=1' } },
          { inlineData: { mimeType: 'application/pdf', data: 'aGk=' } },
        ],
      },
    ]);
    expect(() => contentsOf([{ role: 'user', content: [{ type: 'video_url' }] }])).toThrow(
      expect.objectContaining({ code: 'router.provider_refused', details: { param: 'messages[0].content[0]' } }),
    );
  });
});

describe('signatures of thoughts', () => {
  const format = 'google-gemini-v1';
  const partsOf = (details: unknown, model: string, content: string | null = null) => {
    const contents = contentsOf([hello, { ...calling('a', 'b'), content, reasoning_details: details } as ChatMessage, result('a', 'x'), result('b', 'x')], {
      model,
    });
    return (contents as { parts: { thoughtSignature?: string }[] }[])[1]?.parts.map(({ thoughtSignature: signature }) => signature);
  };

  it('come back with the call and the text that they belong to', () => {
    const details = [
      { type: 'reasoning.text', text: 'hm', index: 0, format },
      { type: 'reasoning.encrypted', data: 'of a', id: 'a', format },
      { type: 'reasoning.encrypted', data: 'of the text', id: null, format },
    ];
    expect(partsOf(details, 'gemini-3-pro', 'so')).toEqual(['of the text', 'of a', undefined]);
    expect(partsOf(details, 'gemini-3-pro')).toEqual(['of the text', 'of a', undefined]);
  });

  it('that were lost, or are of another vendor, are replaced where the model demands them', () => {
    const foreign = [{ type: 'reasoning.encrypted', data: 'd', id: 'a', format: 'openai-responses-v1' }];
    for (const details of [undefined, foreign, 'none']) {
      expect(partsOf(details, 'gemini-3-flash')).toEqual(['skip_thought_signature_validator', undefined]);
      expect(partsOf(details, 'gemini-2.5-flash')).toEqual([undefined, undefined]);
    }
  });
});

describe('the configuration of an answer', () => {
  const configOf = (request: Partial<ChatRequest>, model?: string) => bodyOf(request, model === undefined ? {} : { model }).generationConfig;

  it('has the parameters that the API knows', () => {
    expect(
      configOf({
        max_tokens: 5,
        max_completion_tokens: 7,
        temperature: 0,
        top_p: 0.5,
        top_k: 4,
        stop: ['1', '', '2', '3', '4', '5', '6'],
        seed: 1,
        presence_penalty: 1,
        frequency_penalty: -1,
        logprobs: true,
        top_logprobs: 3,
        modalities: ['text', 'image'],
        logit_bias: { 1: 1 },
        user: 'u',
      }),
    ).toEqual({
      maxOutputTokens: 7,
      temperature: 0,
      topP: 0.5,
      topK: 4,
      stopSequences: ['1', '2', '3', '4', '5'],
      seed: 1,
      presencePenalty: 1,
      frequencyPenalty: -1,
      responseLogprobs: true,
      logprobs: 3,
      responseModalities: ['TEXT', 'IMAGE'],
    });
    expect(configOf({ temperature: null, stop: [] })).toBeUndefined();
  });

  it('has a format', () => {
    const schema = { type: 'object', properties: {} };
    expect(configOf({ response_format: { type: 'json_object' } })).toEqual({ responseMimeType: 'application/json' });
    expect(configOf({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } })).toEqual({
      responseMimeType: 'application/json',
      responseJsonSchema: schema,
    });
  });

  it.each([
    ['gemini-2.5-flash', { effort: 'high' as const }, { includeThoughts: true, thinkingBudget: 8_000 }],
    ['gemini-2.5-flash', { max_tokens: 100_000 }, { includeThoughts: true, thinkingBudget: 9_500 }],
    ['gemini-2.5-flash', { effort: 'none' as const }, { includeThoughts: false, thinkingBudget: 0 }],
    ['gemini-2.5-pro', { enabled: false }, { includeThoughts: false, thinkingBudget: 128 }],
    ['gemini-2.5-pro', { enabled: true, exclude: true }, { includeThoughts: false, thinkingBudget: 5_000 }],
    ['gemini-3-flash', { effort: 'minimal' as const }, { includeThoughts: true, thinkingLevel: 'MINIMAL' }],
    ['gemini-3-flash', { max_tokens: 5_000 }, { includeThoughts: true, thinkingLevel: 'MEDIUM' }],
    ['gemini-3-pro-preview', { effort: 'medium' as const }, { includeThoughts: true, thinkingLevel: 'HIGH' }],
    ['gemini-3.1-pro', { effort: 'none' as const }, { includeThoughts: false, thinkingLevel: 'LOW' }],
    ['gemini-3-flash', { effort: 'xhigh' as const }, { includeThoughts: true, thinkingLevel: 'HIGH' }],
    ['gemini-3-flash', {}, undefined],
  ])('of %s with reasoning %o thinks with %o', (model, reasoning, thinkingConfig) => {
    expect(configOf({ reasoning, max_tokens: 10_000 }, model)).toEqual({ maxOutputTokens: 10_000, ...(thinkingConfig && { thinkingConfig }) });
  });
});

describe('tools', () => {
  it('have JSON schemas, and are chosen', () => {
    const parameters = { type: 'object', properties: { at: { const: 1 } }, $schema: 'x' };
    expect(bodyOf({ tools: [tool('look', { description: 'Looks.', parameters }), tool('wait')] })).toMatchObject({
      tools: [{ functionDeclarations: [{ name: 'look', description: 'Looks.', parametersJsonSchema: parameters }, { name: 'wait' }] }],
    });
    expect(bodyOf({ tools: [] })).toEqual(bodyOf({}));
  });

  it.each([
    [undefined, undefined],
    ['auto' as const, { mode: 'AUTO' }],
    ['none' as const, { mode: 'NONE' }],
    ['required' as const, { mode: 'ANY' }],
    [
      { type: 'function' as const, function: { name: 'look' } },
      { mode: 'ANY', allowedFunctionNames: ['look'] },
    ],
  ])('are chosen with %o by %o', (choice, expected) => {
    const { toolConfig } = bodyOf({ tools: [tool('look')], ...(choice === undefined ? {} : { tool_choice: choice }) });
    expect(toolConfig).toEqual(expected && { functionCallingConfig: expected });
  });

  it('that are strict are validated', () => {
    expect(bodyOf({ tools: [tool('look', { strict: true })] }).toolConfig).toEqual({ functionCallingConfig: { mode: 'VALIDATED' } });
  });
});

it('sets one threshold for all categories of harm when the operator has one', () => {
  expect(bodyOf({}, { safety: 'BLOCK_NONE' }).safetySettings).toHaveLength(4);
  expect(bodyOf({})).not.toHaveProperty('safetySettings');
});

describe('the form of an error', () => {
  it.each([
    [
      { code: 429, message: 'no', status: 'RESOURCE_EXHAUSTED', details: [{ '@type': 'RetryInfo', retryDelay: '37s' }] },
      { status: 429, retryAfterMs: 37_000, code: 'RESOURCE_EXHAUSTED' },
    ],
    [
      { code: 400, message: 'API key not valid.', status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] },
      { status: 401, code: 'API_KEY_INVALID' },
    ],
    [
      { code: 400, message: 'The input token count (2) exceeds the maximum number of tokens allowed (1).', status: 'INVALID_ARGUMENT' },
      { code: 'context_length_exceeded' },
    ],
    [[{ error: { code: 503, message: 'no', status: 'UNAVAILABLE' } }], { status: 503, type: 'UNAVAILABLE', message: 'no' }],
    ['words', { message: 'words', code: null }],
    [null, { message: null }],
    [
      { code: 'x', message: 7, details: 'y' },
      { message: null, code: null },
    ],
  ])('%o', (error, expected) => {
    expect(describeError(error)).toMatchObject(expected);
  });
});
