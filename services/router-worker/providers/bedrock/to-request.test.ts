import { describe, expect, it } from 'vitest';
import type { ChatMessage, ChatRequest, ChatTool } from '#shared/contracts/router/chat-request.ts';
import { ODD_NUMBERS } from '../conformance/under-test.ts';
import { exactJson } from '../exact-numbers.ts';
import { bedrockTraits } from './model-traits.ts';
import { toConversation } from './to-messages.ts';
import { toRequest } from './to-request.ts';

const hello: ChatMessage = { role: 'user', content: 'hi' };
const CLAUDE = 'eu.anthropic.claude-haiku-4-5-20251001-v1:0';
const OLD = 'anthropic.claude-sonnet-4-20250514-v1:0';
const ADAPTIVE = 'anthropic.claude-opus-4-6-v1';
const NOVA = 'eu.amazon.nova-2-lite-v1:0';
const LLAMA = 'meta.llama3-3-70b-instruct-v1:0';
const mark = { cache_control: { type: 'ephemeral' as const } };

function requestOf(request: Partial<ChatRequest>, model = CLAUDE, maxCompletionTokens?: number) {
  return toRequest({ model, request: { messages: [hello], ...request }, maxCompletionTokens }, bedrockTraits(model));
}

const bodyOf = (...given: Parameters<typeof requestOf>) => requestOf(...given).body;

const messagesOf = (...messages: ChatMessage[]) => bodyOf({ messages }).messages;

const calling = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function' as const, function: { name: 'look', arguments: '{"at":1}' } })),
});
const result = (id: string, content: ChatMessage['content'] = `of ${id}`): ChatMessage => ({ role: 'tool', tool_call_id: id, content: content ?? '' });
const toolUse = (id: string) => ({ toolUse: { toolUseId: id, name: 'look', input: { at: 1 } } });
const toolResult = (id: string) => ({ toolResult: { toolUseId: id, content: [{ text: `of ${id}` }] } });
const tool = (name: string, fields: object = {}): ChatTool => ({ type: 'function', function: { name }, ...fields });
const spec = (name: string) => ({ toolSpec: { name, inputSchema: { json: { type: 'object', properties: {} } } } });
const schema = { type: 'object', properties: { at: { type: 'integer' } } };
const asked = { response_format: { type: 'json_schema' as const, json_schema: { name: 'place', schema } } };

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
      messages: [{ role: 'system', content: 'be kind' }, { role: 'developer', content: 'be brief' }, hello, { role: 'system', content: 'now' }],
    });
    expect(body.system).toEqual([{ text: 'be kind' }, { text: 'be brief' }]);
    expect(body.messages).toEqual([{ role: 'user', content: [{ text: 'hi' }, { text: 'now' }] }]);
  });

  it('alternates, begins with the user, and ends without white space', () => {
    expect(messagesOf({ role: 'assistant', content: 'a' }, hello, hello, { role: 'assistant', content: 'b ' })).toEqual([
      { role: 'user', content: [{ text: '.' }] },
      { role: 'assistant', content: [{ text: 'a' }] },
      { role: 'user', content: [{ text: 'hi' }, { text: 'hi' }] },
      { role: 'assistant', content: [{ text: 'b' }] },
    ]);
  });

  it('has turns of any length', () => {
    const content = Array.from({ length: 200_000 }, () => ({ type: 'text' as const, text: 'a' }));
    const { messages } = toConversation([hello, { role: 'user', content }], { takesReasoning: false });
    expect(messages[0]?.content.length).toBe(200_001);
  });

  it('has all results of parallel calls in one message, before its other content', () => {
    expect(messagesOf(hello, calling('a', 'b'), result('a'), { role: 'user', content: 'well?' }, result('b'))).toEqual([
      { role: 'user', content: [{ text: 'hi' }] },
      { role: 'assistant', content: [toolUse('a'), toolUse('b')] },
      { role: 'user', content: [toolResult('a'), toolResult('b'), { text: 'well?' }] },
    ]);
  });

  it('has ids that the API takes', () => {
    const [id, made] = [`call|${'x'.repeat(80)}`, 'x'.repeat(64)];
    expect(messagesOf(hello, calling(id), result(id, 'x'))).toMatchObject([
      {},
      { content: [{ toolUse: { toolUseId: made } }] },
      { content: [{ toolResult: { toolUseId: made } }] },
    ]);
  });

  it('has signed and redacted reasoning first, of Claude alone', () => {
    const answer = { ...calling('a'), reasoning_details: reasoning } as ChatMessage;
    expect(messagesOf(hello, answer, result('a'))).toMatchObject([
      {},
      {
        content: [
          { reasoningContent: { reasoningText: { text: 'let me see', signature: 'sig' } } },
          { reasoningContent: { redactedContent: 'c2Vj' } },
          toolUse('a'),
        ],
      },
      {},
    ]);
    expect(bodyOf({ messages: [hello, answer, result('a')] }, NOVA).messages).toMatchObject([{}, { content: [toolUse('a')] }, {}]);
  });
});

const format = 'anthropic-claude-v1';
const reasoning = [
  { type: 'reasoning.text', text: 'let me ', index: 0, format },
  { type: 'reasoning.text', text: 'see', index: 0, format },
  { type: 'reasoning.text', signature: 'sig', index: 0, format },
  { type: 'reasoning.encrypted', data: 'c2Vj', index: 1, format },
  { type: 'reasoning.text', text: 'not signed', index: 2, format },
  { type: 'reasoning.encrypted', data: 'other', format: 'google-gemini-v1' },
];

describe('files', () => {
  const file = (file_data: string, filename?: string) => ({ type: 'file' as const, file: { file_data, ...(filename !== undefined && { filename }) } });
  const pdf = 'data:application/pdf;base64,JVBERg==';

  it('are pictures and documents, with a text beside them and names that the API takes', () => {
    const content = [file(pdf, 'Größe of_it (v2).pdf'), file(pdf), file(pdf), file('data:text/plain,a%20b', 'notes.txt')];
    expect(messagesOf({ role: 'user', content })).toEqual([
      {
        role: 'user',
        content: [
          { document: { format: 'pdf', name: 'Gr e of it (v2)', source: { bytes: 'JVBERg==' } } },
          { document: { format: 'pdf', name: 'document', source: { bytes: 'JVBERg==' } } },
          { document: { format: 'pdf', name: 'document 2', source: { bytes: 'JVBERg==' } } },
          { document: { format: 'txt', name: 'notes', source: { bytes: 'YSBi' } } },
          { text: '.' },
        ],
      },
    ]);
    expect(messagesOf({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/jpg;base64,AAAA' } }] })).toEqual([
      { role: 'user', content: [{ image: { format: 'jpeg', source: { bytes: 'AAAA' } } }] },
    ]);
  });

  const namesOf = (names: readonly string[]) =>
    toConversation([{ role: 'user', content: names.map((name) => file('data:,', name)) }], { takesReasoning: false }).messages.flatMap(({ content }) =>
      content.flatMap(({ item }) => ('document' in item ? [item.document.name] : [])),
    );

  it('have names of their own within the length that the API takes, whatever they are called', () => {
    expect(namesOf(['a', 'a', 'a 2', 'a', 'a 3'])).toEqual(['a', 'a 2', 'a 2 2', 'a 3', 'a 3 2']);
    const long = 'x'.repeat(200);
    expect(namesOf([long, long, long])).toEqual([long, `${'x'.repeat(198)} 2`, `${'x'.repeat(198)} 3`]);
    const broken = `${'x'.repeat(197)} yy`;
    expect(namesOf([broken, broken])).toEqual([broken, `${'x'.repeat(197)} 2`]);
  });

  it('are 100 documents at most', () => {
    expect(new Set(namesOf(Array.from({ length: 100 }, () => 'a'))).size).toBe(100);
    const refusal = { code: 'router.provider_refused', details: { param: 'messages' } };
    expect(() => namesOf(Array.from({ length: 101 }, () => 'a'))).toThrow(expect.objectContaining(refusal));
  });

  it.each([
    [{ type: 'image_url', image_url: { url: 'data:image/tiff;base64,AAAA' } }, 'messages[0].content[0].image_url.url'],
    [{ type: 'file', file: { file_data: 'https://files.test/a.pdf' } }, 'messages[0].content[0].file.file_data'],
    [{ type: 'file', file: { file_id: 'f' } }, 'messages[0].content[0].file'],
    [{ type: 'file', file: { file_data: 'data:application/zip;base64,AAAA' } }, 'messages[0].content[0].file.file_data'],
    [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }, 'messages[0].content[0]'],
  ])('that the API does not take are refused: %j', (item, param) => {
    const ask = () => messagesOf({ role: 'user', content: [item] } as ChatMessage);
    expect(ask).toThrow(expect.objectContaining({ code: 'router.provider_refused', details: { param } }));
  });
});

describe('cache points', () => {
  const point = { cachePoint: { type: 'default' } };
  const text = (words: string) => ({ type: 'text' as const, text: words, ...mark });

  it('stand behind what is marked: texts, instructions, tools, results, and the end', () => {
    const body = bodyOf({
      ...mark,
      tools: [tool('look', { cache_control: { type: 'ephemeral', ttl: '1h' } })],
      messages: [{ role: 'system', content: [text('be kind')] }, hello, calling('a'), result('a', [text('of a')]), hello],
    });
    expect(body.toolConfig).toEqual({ tools: [spec('look'), { cachePoint: { type: 'default', ttl: '1h' } }] });
    expect(body.system).toEqual([{ text: 'be kind' }, point]);
    expect(body.messages).toMatchObject([{ content: [{ text: 'hi' }] }, {}, { content: [toolResult('a'), point, { text: 'hi' }, point] }]);
  });

  it('are the last four', () => {
    const content = ['a', 'b', 'c', 'd', 'e'].map(text);
    expect(messagesOf({ role: 'user', content })).toEqual([
      { role: 'user', content: [{ text: 'a' }, ...['b', 'c', 'd', 'e'].flatMap((words) => [{ text: words }, point])] },
    ]);
  });

  it('are once at an end that is marked itself', () => {
    expect(bodyOf({ ...mark, messages: [{ role: 'user', content: [text('a')] }] }).messages).toEqual([{ role: 'user', content: [{ text: 'a' }, point] }]);
    const file = { type: 'file' as const, file: { file_data: 'data:,a' } };
    expect(bodyOf({ ...mark, messages: [{ role: 'user', content: [file] }] })).toMatchObject({ messages: [{ content: [{}, { text: '.' }, point] }] });
    expect(messagesOf({ role: 'user', content: [file] })).toMatchObject([{ content: [{}, { text: '.' }] }]);
  });

  const hour = { cache_control: { type: 'ephemeral' as const, ttl: '1h' as const } };
  const ofTools = (model: string) =>
    bodyOf(
      {
        ...hour,
        tools: [tool('look', hour)],
        messages: [{ role: 'system', content: [{ ...text('be kind'), ...hour }] }, hello, calling('a'), result('a', [text('of a')])],
      },
      model,
    );

  it('of Nova are not behind tools and results, and state no hour', () => {
    const { toolConfig, system, messages } = ofTools(NOVA);
    expect({ toolConfig, system }).toEqual({ toolConfig: { tools: [spec('look')] }, system: [{ text: 'be kind' }, point] });
    expect(messages).toMatchObject([{ content: [{ text: 'hi' }] }, {}, { content: [toolResult('a')] }]);
  });

  it.each([CLAUDE, 'us.anthropic.claude-opus-4-5-20251101-v1:0', ADAPTIVE])('of %s state an hour', (model) => {
    expect(ofTools(model).system).toEqual([{ text: 'be kind' }, { cachePoint: { type: 'default', ttl: '1h' } }]);
  });

  it.each([OLD, 'anthropic.claude-opus-4-1-20250805-v1:0', 'anthropic.claude-3-7-sonnet-20250219-v1:0', 'anthropic.claude-3-5-sonnet-20241022-v2:0'])(
    'of %s state no hour',
    (model) => {
      const { toolConfig, system } = ofTools(model);
      expect({ toolConfig, system }).toEqual({ toolConfig: { tools: [spec('look'), point] }, system: [{ text: 'be kind' }, point] });
    },
  );

  it.each(['anthropic.claude-3-haiku-20240307-v1:0', 'anthropic.claude-3-5-sonnet-20240620-v1:0', LLAMA])('are left out for %s', (model) => {
    expect(JSON.stringify(ofTools(model))).not.toContain('cachePoint');
  });

  it('are left out for families that refuse them', () => {
    expect(bodyOf({ ...mark, messages: [{ role: 'user', content: [text('a')] }] }, LLAMA).messages).toEqual([{ role: 'user', content: [{ text: 'a' }] }]);
  });
});

describe('tools', () => {
  const tools = [tool('look')];

  it.each([
    [undefined, undefined],
    ['auto', { auto: {} }],
    ['required', { any: {} }],
    [{ type: 'function', function: { name: 'look' } }, { tool: { name: 'look' } }],
  ] as const)('with the choice %j have %j', (choice, toolChoice) => {
    expect(bodyOf({ tools, ...(choice && { tool_choice: choice }) }).toolConfig).toEqual({ tools: [spec('look')], ...(toolChoice && { toolChoice }) });
  });

  it('are left out for the choice of none, unless the conversation has calls: then the model is told', () => {
    expect(bodyOf({ tools, tool_choice: 'none' })).not.toHaveProperty('toolConfig');
    const body = bodyOf({ tools, tool_choice: 'none', messages: [hello, calling('a'), result('a')] });
    expect(body).toMatchObject({ toolConfig: { tools: [spec('look')] }, system: [{ text: 'Answer without calling a tool.' }] });
    expect(body.toolConfig).not.toHaveProperty('toolChoice');
  });

  it('are those of the conversation’s calls where the request has none', () => {
    const body = bodyOf({ messages: [hello, calling('a'), result('a')] });
    expect(body).toMatchObject({ toolConfig: { tools: [spec('look')] }, system: [{ text: 'Answer without calling a tool.' }] });
  });

  it('that are strict have a closed schema', () => {
    const strict: ChatTool = { type: 'function', function: { name: 'look', description: 'Looks.', parameters: schema, strict: true } };
    expect(bodyOf({ tools: [strict] }).toolConfig).toEqual({
      tools: [{ toolSpec: { name: 'look', description: 'Looks.', inputSchema: { json: { ...schema, additionalProperties: false } }, strict: true } }],
    });
  });
});

describe('a schema of the answer', () => {
  it('is a text in outputConfig', () => {
    for (const model of [CLAUDE, NOVA, LLAMA]) {
      const { body, answerTool } = requestOf(asked, model);
      const jsonSchema = { name: 'place', schema: JSON.stringify({ ...schema, additionalProperties: false }) };
      expect([body.outputConfig, answerTool]).toEqual([{ textFormat: { type: 'json_schema', structure: { jsonSchema } } }, null]);
    }
  });

  it('is a tool for models without that', () => {
    const { body, answerTool } = requestOf(asked, OLD);
    expect(answerTool).toBe('json');
    expect(body).toMatchObject({
      toolConfig: { tools: [{ toolSpec: { name: 'json', inputSchema: { json: schema } } }], toolChoice: { tool: { name: 'json' } } },
    });
    expect(requestOf({ ...asked, tools: [tool('look')] }, OLD).body).toMatchObject({ toolConfig: { toolChoice: { any: {} } } });
  });

  it('that is missing is an instruction', () => {
    expect(bodyOf({ response_format: { type: 'json_object' } }).system).toEqual([{ text: 'Answer with one JSON object and with nothing else.' }]);
  });
});

describe('parameters', () => {
  it('are those of the API', () => {
    expect(bodyOf({ max_tokens: 100, temperature: 1.5, top_k: 40, stop: ['END', ' '], service_tier: 'flex', seed: 1, user: 'u' })).toEqual({
      messages: [{ role: 'user', content: [{ text: 'hi' }] }],
      inferenceConfig: { maxTokens: 100, temperature: 1, stopSequences: ['END'] },
      additionalModelRequestFields: { top_k: 40 },
      serviceTier: { type: 'flex' },
    });
    expect(bodyOf({ temperature: 0.5, top_p: 0.9, top_k: 40 }, NOVA)).toMatchObject({
      inferenceConfig: { temperature: 0.5, topP: 0.9 },
      additionalModelRequestFields: { inferenceConfig: { topK: 40 } },
    });
    expect(bodyOf({ top_p: 0.9, top_k: 40 }, LLAMA)).not.toHaveProperty('additionalModelRequestFields');
  });

  it('of a request that states none are none', () => {
    expect(bodyOf({ service_tier: 'auto' }, CLAUDE, 64_000)).toEqual({ messages: [{ role: 'user', content: [{ text: 'hi' }] }] });
  });
});

describe('reasoning', () => {
  const high = { reasoning: { effort: 'high' as const } };

  it('of Claude is a budget below the limit, without sampling', () => {
    expect(bodyOf({ ...high, max_tokens: 10_000, temperature: 0.5, top_k: 5, top_p: 0.99 })).toMatchObject({
      inferenceConfig: { maxTokens: 10_000, topP: 0.99 },
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 8_000 } },
    });
    expect(bodyOf(high).additionalModelRequestFields).toEqual({ thinking: { type: 'enabled', budget_tokens: 3_276 } });
    expect(bodyOf({ reasoning: { max_tokens: 10_000 } }).additionalModelRequestFields).toEqual({ thinking: { type: 'enabled', budget_tokens: 10_000 } });
    expect(bodyOf(high, CLAUDE, 20_000).additionalModelRequestFields).toEqual({ thinking: { type: 'enabled', budget_tokens: 16_000 } });
  });

  it('of newer Claudes is an effort', () => {
    expect(bodyOf(high, ADAPTIVE)).toMatchObject({
      additionalModelRequestFields: { thinking: { type: 'adaptive', display: 'summarized' } },
      outputConfig: { effort: 'high' },
    });
  });

  it('is left out where a tool is forced, an answer is continued, or the reasoning of a call is lost', () => {
    const excluded: Partial<ChatRequest>[] = [
      { tools: [tool('look')], tool_choice: 'required' },
      { messages: [hello, { role: 'assistant', content: 'I' }] },
      { messages: [hello, calling('a'), result('a')] },
    ];
    for (const request of excluded) expect(bodyOf({ ...high, ...request })).not.toHaveProperty('additionalModelRequestFields');
    const answer = { ...calling('a'), reasoning_details: reasoning } as ChatMessage;
    expect(bodyOf({ ...high, messages: [hello, answer, result('a')] })).toHaveProperty('additionalModelRequestFields.thinking');
  });

  it('of Nova is high without sampling, and below it beside a limit of tokens, which excludes the highest', () => {
    const sampled = { ...high, temperature: 0.5, top_p: 0.9, top_k: 5 };
    expect(bodyOf(sampled, NOVA)).toEqual({
      messages: [{ role: 'user', content: [{ text: 'hi' }] }],
      additionalModelRequestFields: { reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } },
    });
    expect(bodyOf({ ...sampled, max_tokens: 1_000 }, NOVA)).toMatchObject({
      inferenceConfig: { maxTokens: 1_000, temperature: 0.5, topP: 0.9 },
      additionalModelRequestFields: { reasoningConfig: { maxReasoningEffort: 'medium' }, inferenceConfig: { topK: 5 } },
    });
  });

  it('of other families is what their vendors name it', () => {
    expect(bodyOf({ reasoning: { effort: 'xhigh' } }, 'openai.gpt-oss-120b-1:0').additionalModelRequestFields).toEqual({ reasoning_effort: 'high' });
    expect(bodyOf(high, NOVA).additionalModelRequestFields).toEqual({ reasoningConfig: { type: 'enabled', maxReasoningEffort: 'high' } });
    expect(bodyOf(high, 'eu.amazon.nova-lite-v1:0')).not.toHaveProperty('additionalModelRequestFields');
    expect(bodyOf(high, LLAMA)).not.toHaveProperty('additionalModelRequestFields');
    expect(bodyOf({ reasoning: { effort: 'none' } }, NOVA)).not.toHaveProperty('additionalModelRequestFields');
  });
});
