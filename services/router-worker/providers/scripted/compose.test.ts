import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ChatMessage, ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { compose, type Script } from './compose.ts';
import { MAX_READ_CHARS_OF_REQUEST, textsOf } from './conversation.ts';
import { recall } from './recall.ts';

/** For all hostile texts together. */
const MAX_CPU_MS = 5_000;

const INSTRUCTIONS = `You are Ada, the support assistant of Acme Outdoor, a shop for tents and
camping gear. Be friendly and short.

## Shipping
- Standard shipping takes 3 to 5 working days and costs 4.90 EUR.
- Express delivery arrives the next working day and costs 12 EUR.

## Returns
Customers may return goods within **30 days** of delivery.
If a customer asks for an exchange, tell them that exchanges are free of charge.

Never discuss competitors.`;

const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content });
const system: ChatMessage = { role: 'system', content: INSTRUCTIONS };
const saidIn = ({ words }: Script) => words.slice(0, words.length);
const textOf = (messages: ChatMessage[], fields: Partial<ChatRequest> = {}) => saidIn(compose({ messages, ...fields })).join('');
/** Mid-conversation, so that the model does not introduce itself. */
const answerTo = (question: string, instructions = true) => textOf([...(instructions ? [system] : []), user('Hi'), assistant('Hello!'), user(question)]);

const weather = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'Current weather of a city',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, days: { type: 'integer' }, unit: { enum: ['celsius', 'fahrenheit'] } },
      required: ['city'],
    },
  },
};
const order = {
  type: 'function' as const,
  function: {
    name: 'lookup_order',
    description: 'Finds an order by its number',
    parameters: { type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] },
  },
};
const callsTo = (question: string, fields: Partial<ChatRequest> = {}) =>
  compose({ messages: [user(question)], tools: [weather, order], ...fields }).toolCalls.map((call) => [call.name, JSON.parse(call.arguments)]);

describe('what the scripted model knows nothing about', () => {
  it('is said plainly, with what it can be asked instead', () => {
    expect(answerTo('Do you sell kayaks?')).toBe("I'm sorry, but I know nothing about that. You can ask me about shipping and returns.");
  });

  it('is not what it can do', () => {
    expect(answerTo('Hello! What can you do?', false)).toMatch(/^Hello! .*give me tools to call/);
    expect(answerTo('What can you do?', false)).not.toContain('sorry');
  });

  it('is everything when there are no instructions', () => {
    expect(answerTo('What is the capital of France?', false)).toContain('I have no instructions');
  });

  it('is a message without text', () => {
    expect(textOf([system, { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] }])).toContain(
      'You can ask me about',
    );
  });
});

describe('a conversation with the scripted model', () => {
  it('begins with what it is, and says so only when asked again', () => {
    expect(textOf([system, user('Hello!')])).toMatch(/^Hello! I am Switchyard's scripted model/);
    expect(answerTo('Who are you?')).toContain("I am Switchyard's scripted model");
    expect(answerTo('How long does shipping take?')).not.toContain('scripted model');
  });

  it.each([
    ['How long does shipping take?', /Standard shipping takes 3 to 5 working days/],
    ['what about express?', /Express delivery arrives the next working day/],
    ['Can I return my tent?', /Customers may return goods within 30 days of delivery\./],
    ['can i exchange it', /Exchanges are free of charge\./],
    ['What about your competitors?', /My instructions say: "Never discuss competitors\."/],
    ['Thanks a lot!', /^You're welcome!/],
    ['bye', /^Goodbye!/],
  ])('answers "%s" from its instructions', (question, answer) => {
    expect(answerTo(question)).toMatch(answer);
  });

  it('remembers a name, a fact, and what was asked before', () => {
    const before = [
      system,
      user('What does express cost?'),
      assistant('…'),
      user('my name is ada'),
      assistant('…'),
      user('My order number is A-123'),
      assistant('…'),
    ];
    expect(textOf([...before, user('What is my name?')])).toBe('Your name is Ada.');
    expect(textOf([...before, user('What was my order number?')])).toBe('You told me earlier: "My order number is A-123"');
    expect(textOf([...before, user('What did I ask first?')])).toBe('The first thing that you said was: "What does express cost?"');
  });

  it('does not claim to remember what was not said', () => {
    expect(answerTo('What is my name?')).toBe("You haven't told me your name yet.");
  });

  it('says the same to the same request, and counts words as tokens', () => {
    const request = { messages: [system, user('How long does shipping take?')], reasoning: { effort: 'low' as const } };
    const script = compose(request);
    expect(compose(structuredClone(request))).toEqual(script);
    expect(script.usage).toMatchObject({ completionTokens: script.words.length + script.reasoning.length, reasoningTokens: script.reasoning.length });
    expect(script.reasoning.join('')).toContain('shipp');
  });
});

describe('the limits of an answer', () => {
  it('cut it at max_tokens', () => {
    const script = compose({ messages: [user('!repeat 50 one two three')], max_tokens: 4 });
    expect(saidIn(script)).toEqual(['one', ' two', ' three', ' one']);
    expect(script.finish).toBe('length');
  });

  it('end it before a stop sequence', () => {
    const script = compose({ messages: [user('!repeat 50 one two three')], stop: ['three', 'x'] });
    expect(saidIn(script)).toEqual(['one', ' two ']);
    expect(script.finish).toBe('stop');
  });

  it('hold whatever is asked', () => {
    const { words, finish, usage } = compose({ messages: [user('!repeat 999999 a b c d')] });
    expect({ length: words.length, finish, usage: usage.completionTokens }).toEqual({ length: 200_000, finish: 'length', usage: 200_000 });
  });

  it('generate no word of a long answer before it is sent', () => {
    const { words } = compose({ messages: [user('!repeat 100000 one two')] });
    expect(words).toMatchObject({ length: 200_000, once: ['one', ' two'] });
    expect(words.slice(199_997, 300_000)).toEqual([' two', ' one', ' two']);
    expect(words.first(3).slice(0, 9)).toEqual(['one', ' two', ' one']);
  });
});

describe('tools', () => {
  it.each([
    ['tool_choice is none', "What's the weather in Paris?", { tool_choice: 'none' as const }],
    ['nothing fits', 'Tell me a story', {}],
    ['the named tool does not exist', 'hi', { tool_choice: { type: 'function' as const, function: { name: 'nothing' } } }],
  ])('are left alone when %s', (_, question, fields) => {
    expect(callsTo(question, fields)).toEqual([]);
  });

  it.each([
    ["What's the weather in New York, in fahrenheit? days: 3", {}, [['get_weather', { city: 'New York', days: 3, unit: 'fahrenheit' }]]],
    ['What is the weather in city: "Lisbon"?', { tool_choice: 'required' as const }, [['get_weather', { city: 'Lisbon' }]]],
    ['Where is my order ORD-1234?', {}, [['lookup_order', { order_id: 'ORD-1234' }]]],
    ['hello', { tool_choice: 'required' as const }, [['get_weather', { city: '' }]]],
    ['hello 42', { tool_choice: { type: 'function' as const, function: { name: 'lookup_order' } } }, [['lookup_order', { order_id: '' }]]],
    [
      'call lookup_order {"order_id":"{x}\\""} and call get_weather with {"city":"Rome"}',
      {},
      [
        ['lookup_order', { order_id: '{x}"' }],
        ['get_weather', { city: 'Rome' }],
      ],
    ],
  ])('are called for "%s"', (question, fields, calls) => {
    expect(callsTo(question, fields)).toEqual(calls);
    expect(compose({ messages: [user(question)], tools: [weather, order], ...fields }).finish).toBe('tool_calls');
  });

  it('are not called again once they have answered: their results are put into words', () => {
    const called = { id: 'c1', type: 'function' as const, function: { name: 'get_weather', arguments: '{}' } };
    const messages: ChatMessage[] = [
      user("What's the weather in Paris?"),
      { role: 'assistant', content: null, tool_calls: [called] },
      { role: 'tool', tool_call_id: 'c1', content: '{"temperature":21,"wind":{"speed_kmh":10},"alerts":[]}' },
    ];
    const script = compose({ messages, tools: [weather] });
    expect(script.toolCalls).toEqual([]);
    expect(saidIn(script).join('')).toBe('get_weather answered: temperature is 21, wind (speed kmh is 10), alerts (nothing).');
  });
});

describe('an answer in JSON', () => {
  it('is the reply in an object', () => {
    expect(JSON.parse(textOf([user('hi')], { response_format: { type: 'json_object' } }))).toEqual({ answer: expect.stringMatching(/^Hello!/) });
  });

  it('is the smallest instance of the schema, with what the user wrote in it', () => {
    const schema = {
      $defs: { tag: { type: 'string', minLength: 1 } },
      type: 'object',
      properties: {
        name: { type: 'string' },
        age: { type: 'integer', minimum: 1 },
        born: { type: 'string', format: 'date' },
        kind: { enum: ['a', 'b'] },
        tags: { type: 'array', items: { $ref: '#/$defs/tag' }, minItems: 1 },
        parent: { anyOf: [{ type: 'object', properties: { id: { type: 'number', exclusiveMinimum: 100 } }, required: ['id'] }, { type: 'null' }] },
        spare: { type: 'boolean' },
      },
      required: ['name', 'age', 'born', 'kind', 'tags', 'parent'],
    };
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'person', schema } };
    expect(JSON.parse(textOf([user('name: "Bob Ross", age: 52')], { response_format }))).toEqual({
      name: 'Bob Ross',
      age: 52,
      born: '2000-01-01',
      kind: 'a',
      tags: ['Bob Ross'],
      parent: { id: 101 },
    });
  });

  it('survives schemas that name themselves, and schemas that are none', () => {
    const endless = { $ref: '#', type: 'object', properties: { next: { $ref: '#' } }, required: ['next'] };
    for (const schema of [endless, { $ref: '#/nowhere' }, { type: 7 }, { properties: 'x' }]) {
      const text = textOf([user('hi')], { response_format: { type: 'json_schema', json_schema: { name: 's', schema } } });
      expect(() => JSON.parse(text)).not.toThrow();
    }
  });
});

describe('a schema that stands for more than can be made at once', () => {
  const names = Array.from({ length: 20 }, (_, index) => `field_${index}`);
  const fields = (inner: unknown) => Object.fromEntries(names.map((name) => [name, inner]));
  const valuesIn = (value: unknown): number =>
    typeof value === 'object' && value !== null ? Object.values(value).reduce<number>((sum, inner) => sum + valuesIn(inner), 1) : 1;

  it.each<[string, Record<string, unknown>]>([
    ['fields that are all required and the schema itself', { type: 'object', properties: fields({ $ref: '#' }), required: names }],
    ['lists in lists', { type: 'array', minItems: 20, items: { $ref: '#' } }],
    ['parts laid together', { properties: fields({ allOf: names.map(() => ({ $ref: '#' })) }), required: names, allOf: names.map(() => ({ $ref: '#' })) }],
  ])('has a sample all the same: %s', (_case, schema) => {
    const text = textOf([user('hi')], { response_format: { type: 'json_schema', json_schema: { name: 's', schema } } });
    expect(valuesIn(JSON.parse(text))).toBeLessThan(50_000);
  });
});

it('never throws, whatever the input, and always has an answer', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.string({ unit: 'grapheme', maxLength: 200 }), (instructions, question) => {
      const script = compose({ messages: [{ role: 'system', content: instructions }, user(question)], tools: [weather, order] });
      expect(script.words.length + script.toolCalls.length).toBeGreaterThan(0);
    }),
  );
});

describe('a request of many long messages', () => {
  const long = (word: string) => `${word} `.repeat(8_000);

  it('is read up to 128 Ki characters: the last message, then results of tools, then the instructions, then the newest of the rest', () => {
    const messages: ChatMessage[] = [
      { role: 'system', content: long('instructions') },
      ...Array.from({ length: 300 }, (_, index) => user(long(`earlier${index}`))),
      user('What did the tools say?'),
      { role: 'tool', tool_call_id: 'call_1', content: 'the result' },
    ];
    const texts = textsOf({ messages });
    const readOf = (index: number) => texts.at(index)?.length ?? null;

    expect(texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)).toBe(MAX_READ_CHARS_OF_REQUEST);
    expect([readOf(-1), readOf(-2), readOf(0)]).toEqual(['the result'.length, 'What did the tools say?'.length, 65_536]);
    expect([readOf(-3), readOf(1)]).toEqual([65_503, null]);
    expect(compose({ messages }).usage.promptTokens).toBeLessThan(20_000);
  });

  it('is answered from the earliest message that is read', () => {
    const messages = [...Array.from({ length: 300 }, (_, index) => user(long(`earlier${index}`))), user('What was my first message?')];

    expect(textOf(messages)).toMatch(/The first thing that you said was: "earlier298/);
  });

  it('compares 256 words of a question with what was said, not all', () => {
    const filler = Array.from({ length: 256 }, (_, index) => `word${index}`).join(' ');
    const sentences = [{ text: 'The warranty covers two years.', heading: null }];

    expect(recall('warranty', sentences)).toHaveLength(1);
    expect(recall(`${filler} warranty`, sentences)).toEqual([]);
  });

  it('reads 64 Ki characters of what describes its tools', () => {
    const described = (name: string, description: string) => ({ type: 'function' as const, function: { name, description } });
    const fitting = described('a', 'barometric pressure');
    const picked = (before: string) => callsTo('Any barometric pressure?', { tools: [described('b', before), fitting] }).map(([name]) => name);

    expect(picked('x'.repeat(65_000))).toEqual(['a']);
    expect(picked('x'.repeat(66_000))).toEqual([]);
  });
});

it('reads long and hostile texts without holding up the process', () => {
  const texts = [
    '# '.padEnd(60_000, ' #'),
    '- '.repeat(30_000),
    'a, '.repeat(20_000),
    `If ${', '.repeat(20_000)}`,
    '!fail '.repeat(10_000),
    '"\''.repeat(30_000),
    'my '.repeat(20_000),
    '*_`'.repeat(20_000),
    ' '.repeat(60_000),
    '\n\t'.repeat(30_000),
  ];
  const before = process.cpuUsage();
  for (const text of texts) compose({ messages: [{ role: 'system', content: text }, user(text)], tools: [weather, order] });
  const used = process.cpuUsage(before);
  expect((used.user + used.system) / 1_000).toBeLessThan(MAX_CPU_MS);
});
