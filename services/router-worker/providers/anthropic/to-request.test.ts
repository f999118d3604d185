import { describe, expect, it } from 'vitest';
import type { ChatMessage, ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import { ODD_NUMBERS } from '../conformance/under-test.ts';
import { exactJson } from '../exact-numbers.ts';
import type { Message } from './blocks.ts';
import { traitsOf } from './model-traits.ts';
import { toRequest } from './to-request.ts';

const hello: ChatMessage = { role: 'user', content: 'hi' };
/** By what it accepts. */
const OLD = 'claude-sonnet-4-20250514';
const WITH_SCHEMA = 'claude-sonnet-4-5';
const ADAPTIVE = 'claude-opus-4-6';
const NEW = 'claude-opus-4-8';
const NEWEST = 'claude-opus-5-5';

function bodyOf(request: Partial<ChatRequest>, { model = WITH_SCHEMA, isEager = false, maxCompletionTokens = undefined as number | undefined } = {}) {
  return toRequest({ model, request: { messages: [hello], ...request }, maxCompletionTokens }, { traits: traitsOf(model), isEager }).body;
}

function messagesOf(...messages: ChatMessage[]) {
  return bodyOf({ messages }).messages as Message[];
}

const calling = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function' as const, function: { name: 'look', arguments: '{"at":1}' } })),
});
const result = (id: string, content = `of ${id}`): ChatMessage => ({ role: 'tool', tool_call_id: id, content });
const toolUse = (id: string) => ({ type: 'tool_use', id, name: 'look', input: { at: 1 } });
const toolResult = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: `of ${id}` }] });
const tool = (name: string, fields: object = {}): ChatTool => ({ type: 'function', function: { name }, ...fields });

describe('the arguments of a call', () => {
  const sent = (text: string) =>
    exactJson(
      messagesOf(hello, { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'look', arguments: text } }] }),
    );

  it('are sent with their numbers as they are written', () => {
    expect(sent(ODD_NUMBERS)).toContain(`"input":${ODD_NUMBERS}}`);
    expect(sent('12345678901234567890')).toContain('"input":{"value":12345678901234567890}}');
    expect(sent('[1.0]')).toContain('"input":{"value":[1.0]}}');
  });

  it('are sent as a text where they are no JSON', () => {
    expect(sent('{"id":12345678901234567890')).toContain(`"input":${JSON.stringify({ arguments: '{"id":12345678901234567890' })}}`);
    expect(sent(' ')).toContain('"input":{}}');
  });
});

describe('a conversation', () => {
  it('has the leading instructions apart, and later ones in the user’s turn', () => {
    const body = bodyOf({
      messages: [
        { role: 'system', content: 'be kind' },
        { role: 'developer', content: [{ type: 'text', text: 'be brief', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
        hello,
        { role: 'system', content: 'be quick' },
      ],
    });
    expect(body.system).toEqual([
      { type: 'text', text: 'be kind' },
      { type: 'text', text: 'be brief', cache_control: { type: 'ephemeral', ttl: '1h' } },
    ]);
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'hi' },
          { type: 'text', text: 'be quick' },
        ],
      },
    ]);
  });

  it('of instructions alone is one of the user', () => {
    const body = bodyOf({ messages: [{ role: 'system', content: 'say hello' }] });
    expect(body).not.toHaveProperty('system');
    expect(body.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'say hello' }] }]);
  });

  it('has all results of a turn in one message, before its other content', () => {
    expect(messagesOf(hello, calling('a', 'b'), result('a'), { role: 'user', content: 'and?' }, result('b'))).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
      { role: 'assistant', content: [toolUse('a'), toolUse('b')] },
      { role: 'user', content: [toolResult('a'), toolResult('b'), { type: 'text', text: 'and?' }] },
    ]);
  });

  it('alternates, drops empty texts, and begins with the user', () => {
    expect(messagesOf({ role: 'assistant', content: 'one' }, { role: 'user', content: ' ' }, { role: 'assistant', content: 'two' }, hello)).toEqual([
      { role: 'user', content: [{ type: 'text', text: '.' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'one' },
          { type: 'text', text: 'two' },
        ],
      },
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
    ]);
  });

  it('ends without white space when the answer is begun', () => {
    expect(messagesOf(hello, { role: 'assistant', content: 'The answer is (\n ' }).at(-1)).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'The answer is (' }],
    });
  });

  it('has names before what was said, a refusal as text, and ids and arguments that the API accepts', () => {
    const odd = { id: 'functions.look:0', type: 'function' as const };
    expect(
      messagesOf(
        { role: 'user', name: 'Ann', content: 'hi' },
        { role: 'assistant', refusal: 'no', tool_calls: [{ ...odd, function: { name: 'look', arguments: '[1' } }] },
        { role: 'tool', tool_call_id: 'functions.look:0', content: '' },
      ),
    ).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Ann: hi' }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'no' },
          { type: 'tool_use', id: 'functions_look_0', name: 'look', input: { arguments: '[1' } },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'functions_look_0' }] },
    ]);
  });

  it('has pictures and documents by address and as bytes', () => {
    const url = (at: string) => ({ type: 'image_url' as const, image_url: { url: at } });
    const file = (fields: Record<string, string>) => ({ type: 'file' as const, file: fields });
    const content = [
      url('https://files.test/a.png'),
      url('data:image/jpg;base64,aGk='),
      file({ filename: 'a.pdf', file_data: 'data:application/pdf;base64,aGk=' }),
      file({ file_data: 'https://files.test/a.pdf' }),
      file({ file_id: 'file_1' }),
      file({ file_data: 'data:text/plain;base64,aGk=' }),
    ];
    expect(messagesOf({ role: 'user', content })).toEqual([
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'url', url: 'https://files.test/a.png' } },
          { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'aGk=' } },
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'aGk=' }, title: 'a.pdf' },
          { type: 'document', source: { type: 'url', url: 'https://files.test/a.pdf' } },
          { type: 'document', source: { type: 'file', file_id: 'file_1' } },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hi' } },
        ],
      },
    ]);
  });

  it.each([
    [{ type: 'input_audio' as const, input_audio: { data: 'aGk=', format: 'wav' } }, 'messages[0].content[0]'],
    [{ type: 'video_url' as const, video_url: { url: 'https://files.test/a.mp4' } }, 'messages[0].content[0]'],
    [{ type: 'image_url' as const, image_url: { url: 'file:///etc/passwd' } }, 'messages[0].content[0].image_url.url'],
    [{ type: 'image_url' as const, image_url: { url: 'data:image/png,raw' } }, 'messages[0].content[0].image_url.url'],
    [{ type: 'file' as const, file: {} }, 'messages[0].content[0].file'],
  ])('is refused with the path of %o', (item, param) => {
    expect(() => messagesOf({ role: 'user', content: [item] })).toThrow(expect.objectContaining({ code: 'router.provider_refused', details: { param } }));
  });
});

describe('reasoning that comes back', () => {
  const format = 'anthropic-claude-v1';
  const back = (details: unknown) =>
    bodyOf({ messages: [hello, { role: 'assistant', content: 'so', reasoning: 'unsigned', reasoning_details: details }, hello] }).messages;
  const contentWith = (...blocks: object[]) => [
    expect.anything(),
    { role: 'assistant', content: [...blocks, { type: 'text', text: 'so' }] },
    expect.anything(),
  ];

  it('is one block per block of the answer, unchanged, before all else', () => {
    const whole = [
      { type: 'reasoning.text', text: ' a b ', signature: 's1', index: 0, format },
      { type: 'reasoning.encrypted', data: 'd', index: 1, format },
      { type: 'reasoning.text', text: 'c', signature: 's2', index: 2, format },
    ];
    const pieces = [
      { type: 'reasoning.text', text: ' a', index: 0, format },
      { type: 'reasoning.text', text: ' b ', index: 0, format },
      { type: 'reasoning.text', signature: 's1', index: 0, format },
      whole[1],
      { type: 'reasoning.text', text: 'c', index: 2, format },
      { type: 'reasoning.text', signature: 's2', index: 2, format },
    ];
    const expected = contentWith(
      { type: 'thinking', thinking: ' a b ', signature: 's1' },
      { type: 'redacted_thinking', data: 'd' },
      { type: 'thinking', thinking: 'c', signature: 's2' },
    );
    expect(back(whole)).toEqual(expected);
    expect(back(pieces)).toEqual(expected);
    expect(back(pieces.map((piece) => ({ ...piece, index: null })))).toEqual(expected);
  });

  it('is left out without a signature, and from another vendor', () => {
    expect(
      back([
        { type: 'reasoning.text', text: 'a', index: 0, format },
        { type: 'reasoning.text', text: 'a', signature: 's', index: 1, format: 'google-gemini-v1' },
        { type: 'reasoning.encrypted', data: 'd', format: 'openai-responses-v1' },
        { type: 'reasoning.summary', summary: 'a', format },
        'no detail',
      ]),
    ).toEqual(contentWith());
    expect(back('no list')).toEqual(contentWith());
  });
});

describe('the limit of tokens', () => {
  it('is the caller’s, else the endpoint’s, else 4,096', () => {
    expect(bodyOf({ max_tokens: 5, max_completion_tokens: 7 }, { maxCompletionTokens: 9 })).toMatchObject({ max_tokens: 7 });
    expect(bodyOf({}, { maxCompletionTokens: 9 })).toMatchObject({ max_tokens: 9 });
    expect(bodyOf({})).toMatchObject({ max_tokens: 4_096 });
  });
});

describe('thinking', () => {
  const thinkingOf = (request: Partial<ChatRequest>, model = WITH_SCHEMA) => {
    const { thinking, output_config: output } = bodyOf({ max_tokens: 10_000, ...request }, { model });
    return { thinking, output };
  };

  it.each([
    [{ effort: 'high' as const }, 8_000],
    [{ effort: 'minimal' as const }, 1_024],
    [{ enabled: true }, 5_000],
    [{ max_tokens: 3_000 }, 3_000],
    [{ max_tokens: 5 }, 1_024],
    [{ max_tokens: 20_000 }, 9_500],
    [{ effort: 'none' as const }, undefined],
    [{ enabled: false }, undefined],
    [{ summary: 'auto' as const }, undefined],
  ])('of %o has the budget %s', (reasoning, budget) => {
    expect(thinkingOf({ reasoning }).thinking).toEqual(budget && { type: 'enabled', budget_tokens: budget });
  });

  it('has at most 128,000 tokens, and none where the limit is too low', () => {
    const reasoning = { effort: 'high' as const };
    expect(thinkingOf({ reasoning, max_tokens: 200_000 }).thinking).toMatchObject({ budget_tokens: 128_000 });
    expect(thinkingOf({ reasoning, max_tokens: 1_100 }).thinking).toMatchObject({ budget_tokens: 1_024 });
    expect(thinkingOf({ reasoning, max_tokens: 1_050 }).thinking, 'nothing would be left for the answer').toBeUndefined();
  });

  it('leaves room for the answer where the caller gave a budget and no limit', () => {
    const asked = { reasoning: { max_tokens: 8_000 }, max_tokens: undefined } as Partial<ChatRequest>;
    expect(bodyOf(asked)).toMatchObject({ max_tokens: 12_096, thinking: { budget_tokens: 8_000 } });
  });

  it.each([
    [ADAPTIVE, { effort: 'xhigh' as const }, { type: 'adaptive', display: 'summarized' }, { effort: 'max' }],
    [NEW, { effort: 'xhigh' as const }, { type: 'adaptive', display: 'summarized' }, { effort: 'xhigh' }],
    [NEW, { effort: 'minimal' as const }, { type: 'adaptive', display: 'summarized' }, { effort: 'low' }],
    [NEW, { max_tokens: 8_000 }, { type: 'adaptive', display: 'summarized' }, { effort: 'high' }],
    [NEW, { effort: 'none' as const }, { type: 'disabled' }, undefined],
    [NEW, {}, undefined, undefined],
    [NEWEST, { effort: 'none' as const }, undefined, { effort: 'low' }],
    [NEWEST, { effort: 'high' as const }, { type: 'adaptive', display: 'summarized' }, { effort: 'high' }],
  ])('of %s with %o is %o with %o', (model, reasoning, thinking, output) => {
    expect(thinkingOf({ reasoning }, model)).toEqual({ thinking, output });
  });

  it('takes OpenAI’s name of the effort, and verbosity where no reasoning is asked for', () => {
    expect(thinkingOf({ reasoning_effort: 'high' }).thinking).toMatchObject({ budget_tokens: 8_000 });
    expect(thinkingOf({ verbosity: 'low' }, NEW)).toEqual({ thinking: undefined, output: { effort: 'low' } });
  });

  it('has the next lower effort for a model that refuses the highest', () => {
    const traits = { ...traitsOf('claude-opus-4-6'), hasMaxEffort: false };
    for (const effort of ['xhigh', 'max'] as const) {
      const { body } = toRequest({ model: 'claude-opus-4-6', request: { messages: [hello], reasoning: { effort } } }, { traits, isEager: false });
      expect(body.output_config).toEqual({ effort: 'high' });
    }
  });

  it('has no effort for a model that refuses it, which keeps the schema', () => {
    const traits = { ...traitsOf(NEW), takesEffort: false };
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'any', schema: { type: 'object' } } };
    const { body } = toRequest({ model: NEW, request: { messages: [hello], reasoning: { effort: 'high' }, response_format } }, { traits, isEager: false });
    expect(body).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { format: { type: 'json_schema' } } });
    expect(body.output_config).not.toHaveProperty('effort');
  });

  it('gives way to a forced tool, to a begun answer, and to a call whose thinking was lost', () => {
    const reasoning = { effort: 'high' as const };
    const tools = [tool('look')];
    expect(thinkingOf({ reasoning, tools, tool_choice: 'required' }).thinking).toBeUndefined();
    expect(thinkingOf({ reasoning, tools, tool_choice: 'required' }, NEW).thinking).toEqual({ type: 'disabled' });
    expect(thinkingOf({ reasoning, messages: [hello, { role: 'assistant', content: 'so' }] }).thinking).toBeUndefined();
    const messages = [hello, calling('a'), result('a')];
    expect(thinkingOf({ reasoning, tools, messages }).thinking).toBeUndefined();
    expect(thinkingOf({ reasoning, tools, messages }, NEW).thinking).toMatchObject({ type: 'adaptive' });
    const details = [{ type: 'reasoning.text', text: 'a', signature: 's', index: 0 }];
    expect(thinkingOf({ reasoning, tools, messages: [hello, { ...calling('a'), reasoning_details: details }, result('a')] }).thinking).toBeDefined();
  });
});

describe('sampling parameters', () => {
  const kept = (request: Partial<ChatRequest>, model?: string) => {
    const { temperature, top_p, top_k } = bodyOf({ max_tokens: 9_000, ...request }, model === undefined ? {} : { model });
    return { temperature, top_p, top_k };
  };

  it('are bounded, and never both temperature and top_p', () => {
    expect(kept({ temperature: 1.7, top_p: 0.5, top_k: 7 })).toEqual({ temperature: 1, top_p: undefined, top_k: 7 });
    expect(kept({ temperature: 0 })).toMatchObject({ temperature: 0 });
    expect(kept({ temperature: null, top_p: 0.5 })).toMatchObject({ top_p: 0.5 });
  });

  it('are a high top_p alone beside thinking, and none at models that refuse them', () => {
    const reasoning = { enabled: true };
    expect(kept({ reasoning, temperature: 0.5, top_p: 0.97, top_k: 7 })).toEqual({ temperature: undefined, top_p: 0.97, top_k: undefined });
    expect(kept({ reasoning, top_p: 0.5 }).top_p).toBeUndefined();
    expect(kept({ temperature: 0.5, top_p: 0.97, top_k: 7 }, NEW)).toEqual({});
  });
});

describe('tools', () => {
  it('have a schema of an object, and a mark of the cache', () => {
    const parameters = { properties: { at: { type: 'integer' } }, required: ['at'] };
    const tools = [
      tool('look', { function: { name: 'look', description: 'Looks.', parameters, strict: true }, cache_control: { type: 'ephemeral' } }),
      tool('wait'),
    ];
    expect(bodyOf({ tools }).tools).toEqual([
      {
        name: 'look',
        description: 'Looks.',
        input_schema: { ...parameters, type: 'object', additionalProperties: false },
        strict: true,
        cache_control: { type: 'ephemeral' },
      },
      { name: 'wait', input_schema: { type: 'object', properties: {} } },
    ]);
    expect(bodyOf({ tools }, { model: OLD, isEager: true }).tools).toMatchObject([
      { input_schema: { ...parameters, type: 'object' }, eager_input_streaming: true },
      { eager_input_streaming: true },
    ]);
    expect(JSON.stringify(bodyOf({ tools }, { model: OLD }).tools)).not.toContain('strict');
  });

  it.each([
    [{}, undefined],
    [{ tool_choice: 'auto' as const }, { type: 'auto' }],
    [{ tool_choice: 'none' as const, parallel_tool_calls: false }, { type: 'none' }],
    [{ tool_choice: 'required' as const }, { type: 'any' }],
    [{ tool_choice: { type: 'function' as const, function: { name: 'look' } } }, { type: 'tool', name: 'look' }],
    [{ parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    [
      { tool_choice: 'required' as const, parallel_tool_calls: false },
      { type: 'any', disable_parallel_tool_use: true },
    ],
    [{ parallel_tool_calls: true }, undefined],
  ])('are chosen with %o by %o', (fields, choice) => {
    expect(bodyOf({ tools: [tool('look')], ...fields }).tool_choice).toEqual(choice);
  });

  it('are not forced at models that refuse it', () => {
    expect(bodyOf({ tools: [tool('look')], tool_choice: 'required' }, { model: NEWEST }).tool_choice).toEqual({ type: 'auto' });
  });

  it('that were called before are named when the request has none, and can’t be called', () => {
    expect(bodyOf({ messages: [hello, calling('a', 'b'), result('a'), result('b')] })).toMatchObject({
      tools: [{ name: 'look', input_schema: { type: 'object' } }],
      tool_choice: { type: 'none' },
    });
    expect(bodyOf({ tools: [] })).not.toHaveProperty('tools');
  });
});

describe('the format of the answer', () => {
  const schema = {
    type: 'object',
    properties: { list: { type: 'array', items: { type: 'object', properties: { a: { $ref: '#/$defs/a' } } } } },
    $defs: { a: { anyOf: [{ type: 'object', properties: {} }, { type: 'null' }] } },
  };
  const format = { type: 'json_schema' as const, json_schema: { name: 'list', schema } };

  it('is a schema with closed objects', () => {
    expect(bodyOf({ response_format: format }).output_config).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { list: { type: 'array', items: { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, additionalProperties: false } } },
          $defs: { a: { anyOf: [{ type: 'object', properties: {}, additionalProperties: false }, { type: 'null' }] } },
          additionalProperties: false,
        },
      },
    });
  });

  it('is a tool at models without schemas, forced unless tools may be called', () => {
    expect(bodyOf({ response_format: format }, { model: OLD })).toMatchObject({
      tools: [{ name: 'json', input_schema: schema }],
      tool_choice: { type: 'tool', name: 'json', disable_parallel_tool_use: true },
    });
    expect(bodyOf({ response_format: format, tools: [tool('json')] }, { model: OLD })).toMatchObject({
      tools: [{ name: 'json' }, { name: 'json_answer' }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    });
    expect(bodyOf({ response_format: format, tools: [tool('look')], tool_choice: 'required' }, { model: OLD }).tools).toHaveLength(1);
  });

  it('without a schema is an instruction', () => {
    for (const response_format of [{ type: 'json_object' as const }, { type: 'json_schema' as const, json_schema: { name: 'any' } }]) {
      expect(bodyOf({ response_format }).system).toEqual([{ type: 'text', text: expect.stringContaining('JSON') }]);
    }
  });
});

describe('other fields', () => {
  it('are mapped where the API has them, and else left out', () => {
    expect(
      bodyOf({
        user: 'u1',
        stop: ['END', ' ', ''],
        service_tier: 'default',
        cache_control: { type: 'ephemeral' },
        seed: 7,
        logprobs: true,
        logit_bias: { 1: 1 },
        frequency_penalty: 1,
        n: 2,
        session_id: 's',
        metadata: { a: 'b' },
        provider: { order: ['x'] },
      }),
    ).toEqual({
      model: WITH_SCHEMA,
      max_tokens: 4_096,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
      metadata: { user_id: 'u1' },
      stop_sequences: ['END'],
      service_tier: 'standard_only',
      cache_control: { type: 'ephemeral' },
      stream: true,
    });
    expect(bodyOf({ stop: '\n', service_tier: 'flex' })).toEqual(bodyOf({}));
  });

  it('mark at most four places of the prompt for the cache, the last ones', () => {
    const marked = (text: string) => ({ type: 'text' as const, text, cache_control: { type: 'ephemeral' as const } });
    const request = {
      tools: [tool('look', { cache_control: { type: 'ephemeral' } })],
      messages: [
        { role: 'system' as const, content: [marked('s')] },
        { role: 'user' as const, content: [marked('1'), marked('2'), marked('3')] },
      ],
    };
    const marks = (body: object) => JSON.stringify(body).match(/"cache_control":/g)?.length;
    const body = bodyOf(request);
    expect(marks(body)).toBe(4);
    expect(body.tools).toEqual([{ name: 'look', input_schema: { type: 'object', properties: {} } }]);
    expect(marks(bodyOf({ ...request, cache_control: { type: 'ephemeral' } }))).toBe(4);
  });
});
