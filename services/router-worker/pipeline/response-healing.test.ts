import { describe, expect, it } from 'vitest';
import { ItemAbortController } from '#services/work/item-signal.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import { type Answer, emptyAnswer } from '#shared/surfaces/answer.ts';
import { responseHealing } from './response-healing.ts';

type Format = NonNullable<ChatRequest['response_format']>;
const anyObject: Format = { type: 'json_object' };
const withSchema = (schema?: Record<string, unknown>): Format => ({ type: 'json_schema', json_schema: { name: 'answer', ...(schema && { schema }) } });
const person = withSchema({ type: 'object', properties: { name: { type: 'string' }, age: { type: 'integer' } }, required: ['name', 'age'] });

async function healed(text: string, format: Format | undefined = anyObject, fields: Partial<Answer> = {}): Promise<string> {
  const answer: Answer = { ...emptyAnswer(), text, textChars: text.length, finishReason: 'stop', ...fields };
  const request: ChatRequest = { messages: [], ...(format && { response_format: format }) };
  const result = await responseHealing.answer?.(answer, request, new ItemAbortController());
  return result?.text ?? '';
}

const ADA = { name: 'Ada', age: 36 };

describe('response-healing mends (router-facts 6.4)', () => {
  it.each<[string, string]>([
    ['a missing closing brace', '{"name": "Ada", "age": 36'],
    ['a missing closing quote', '{"age": 36, "name": "Ada'],
    ['a trailing comma', '{"name": "Ada", "age": 36,}'],
    ['unquoted keys', '{name: "Ada", age: 36}'],
    ['single quotes', "{'name': 'Ada', 'age': 36}"],
    ['a Markdown fence', '```json\n{"name": "Ada", "age": 36}\n```'],
    ['a fence that is not closed, around broken JSON', '```json\n{"name": "Ada", "age": 36'],
    ['prose before and behind it', 'Here is the [person] you asked for:\n{"name": "Ada", "age": 36}\nIs there anything else?'],
    ['prose behind broken JSON', "{'name': 'Ada', 'age': 36} I hope this helps!"],
    ['several of them', 'Sure!\n```\n{name: \'Ada\', "age": 36,}\n```\nBye.'],
  ])('%s', async (_, text) => {
    expect(JSON.parse(await healed(text))).toEqual(ADA);
    expect(JSON.parse(await healed(text, person))).toEqual(ADA);
  });

  it('brackets missing in lists', async () => {
    expect(JSON.parse(await healed('[{"a": 1}, {"a": 2}', withSchema({ type: 'array' })))).toEqual([{ a: 1 }, { a: 2 }]);
    expect(JSON.parse(await healed('[{"a": 1}, {"a": 2}', withSchema()))).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it('everything behind an inner bracket, which is no end', async () => {
    expect(JSON.parse(await healed('{"a": {"b": 1}, "c": [1, 2'))).toEqual({ a: { b: 1 }, c: [1, 2] });
  });

  it('the JSON of a fence without a change of its bytes', async () => {
    expect(await healed('```json\n{ "a":1.0 }\n```')).toBe('{ "a":1.0 }');
  });
});

describe('response-healing leaves alone', () => {
  it.each<[string, string, Format?, Partial<Answer>?]>([
    ['what parses', ' {"name":"Ada"} '],
    ['what parses and is of the wrong kind', '"a text"'],
    ['what parses and violates the schema', '{"name": "Ada"}', person],
    ['what ended for its length', '{"name": "Ada", "age": 3', person, { finishReason: 'length' }],
    ['what a filter cut off', '{"name": "Ada"', anyObject, { finishReason: 'content_filter' }],
    [
      'text beside a tool call',
      '{"name": "Ada"',
      anyObject,
      { toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }], finishReason: 'tool_calls' },
    ],
    ['prose', 'I can not answer this.'],
    ['what violates the schema when it is mended', "{'name': 'Ada'}", person],
    ['what is no object, where one was asked for', '[1, 2'],
    ['text', '{"name": "Ada"', { type: 'text' }],
    ['what a schema that is none should describe', '{"name": "Ada"', withSchema({ type: 'nothing' })],
    ['nesting that no repair survives', '['.repeat(30_000), withSchema()],
    ['more than 32 Ki characters', `{"a": "${'x'.repeat(32 * 1_024)}`],
    ['nothing', ''],
  ])('%s', async (_, text, format, fields) => {
    expect(await healed(text, format, fields)).toBe(text);
  });
});

it('response-healing does nothing where no format is asked for, and keeps the counts that are billed', async () => {
  const answer: Answer = { ...emptyAnswer(), text: '{"a": 1', textChars: 7, finishReason: 'stop' };
  const signal = new ItemAbortController();
  expect(await responseHealing.answer?.(answer, { messages: [] }, signal)).toBe(answer);
  expect(await responseHealing.answer?.(answer, { messages: [], response_format: anyObject }, signal)).toMatchObject({ text: '{"a": 1}', textChars: 7 });
});
