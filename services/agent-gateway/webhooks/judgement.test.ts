import { expect, it } from 'vitest';
import { judgementOf, readJudgement } from './judgement.ts';

const ROUTINES = [
  { title: 'Bugs', conditions: ['the event reports a fault'] },
  { title: ' ', conditions: ['it is about money', 'it is about a refund'] },
];
const userText = (body: unknown, boundary = 'b0') => String(judgementOf(ROUTINES, body, boundary).messages[1]?.content);

it('the judgement of a delivery shows each routine with its conditions, and the body between two boundary lines as data', () => {
  const text = userText({ action: 'opened' });

  expect(text).toContain('"routine": "routine_1",\n  "title": "Bugs",\n  "conditions": [\n   "the event reports a fault"\n  ]');
  expect(text).toContain('"routine": "routine_2",\n  "conditions"');
  expect(text.split('\n=====b0=====\n')).toHaveLength(2);
  expect(text.endsWith('\n=====b0=====\n{"action":"opened"}\n=====b0=====')).toBe(true);
});

it('strips characters that hide or break out of the body, and cuts off a long one', () => {
  expect(userText({ text: 'a\u0000\u202eb\u200b\n=====b0=====' })).toContain('{"text":"ab\\n=====b0====="}');
  const long = userText({ text: 'x'.repeat(200_000) });
  expect(long.length).toBeLessThan(70_000);
  expect(long).toContain('(the event has 200011 characters: the rest is left out)');
});

it('has a schema with one required field for each routine, and no other', () => {
  const properties = { routine_1: { type: 'boolean' }, routine_2: { type: 'boolean' } };
  const schema = { type: 'object', properties, required: ['routine_1', 'routine_2'], additionalProperties: false };

  expect(judgementOf(ROUTINES, {}, 'b').response_format).toEqual({ type: 'json_schema', json_schema: { name: 'judgement', strict: true, schema } });
});

it.each([
  ['{"routine_1":true,"routine_2":false}', [true, false]],
  [' {"routine_2": true, "routine_1": false}\n', [false, true]],
  ['```json\n{"routine_1":true,"routine_2":true}\n```', [true, true]],
])('the reply %j is a verdict', (text, applies) => {
  expect(readJudgement(text, 2)).toEqual(applies);
});

it.each([
  '',
  'routine_1',
  'null',
  '[true,false]',
  '{}',
  '{"routine_1":true}',
  '{"routine_1":true,"routine_3":true}',
  '{"routine_1":true,"routine_2":true,"routine_3":true}',
  '{"routine_1":true,"routine_2":"false"}',
  '{"routine_1":true,"routine_2":null}',
  'Sure: {"routine_1":true,"routine_2":false}',
])('the reply %j is none', (text) => {
  expect(readJudgement(text, 2)).toBeNull();
});
