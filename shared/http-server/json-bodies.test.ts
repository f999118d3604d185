import Fastify from 'fastify';
import { expect, it, vi } from 'vitest';
import { errorCatalogue, SwitchyardError } from '../errors/switchyard-error.ts';
import { noteText } from '../lifecycle/heap.ts';
import { parseJsonBodies } from './json-bodies.ts';

vi.mock('../lifecycle/heap.ts', { spy: true });

it('the size of a body that is read as JSON is noted for the heap', async () => {
  const app = Fastify();
  parseJsonBodies(app, { limitBytes: 100_000, grew: () => {}, mayBeEmpty: false });
  app.post('/', async ({ body }) => body);
  const text = JSON.stringify({ text: 'é'.repeat(20_000) });
  const { body } = await app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, payload: text });
  await app.close();

  expect(body).toBe(text);
  expect(vi.mocked(noteText).mock.calls).toEqual([[Buffer.byteLength(text)]]);
});

it.each([
  ['{"a":{"__proto__":{}}}', 'the body has a key that would set a prototype'],
  ['{"constructor":{"prototype":{}}}', 'the body has a key that would set a prototype'],
  ['{"a":', 'Body is not valid JSON'],
  ['\uFEFF\uFEFF{"a":1}', 'Body is not valid JSON'],
  [`{"a":"${'x'.repeat(100)}"}`, 'the body is larger than 64 bytes'],
])('says what is wrong with a body: %s', async (payload, problem) => {
  const app = Fastify();
  parseJsonBodies(app, { limitBytes: 64, grew: () => {}, mayBeEmpty: false });
  app.post('/', async () => 'read');
  const { body } = await app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, payload });
  await app.close();

  expect(JSON.parse(body).message).toContain(problem);
});

it.each([
  ['application/json', 200],
  ['application/json;charset=UTF-8', 200],
  ['application/json; charset="utf8"', 200],
  ['application/json; charset=us-ascii', 200],
  ['application/json; boundary=x', 200],
  ['application/json; charset="ISO-8859-1"', 200],
  ['application/json; charset=ISO-8859-1', 200, '"é"'],
  ['application/json; charset=ISO-8859-1', 415, Buffer.from('"é"', 'latin1')],
  ['application/json', 200, Buffer.from('"é"', 'latin1')],
  ['application/json; charset=utf-16', 415],
  ['application/json; charset="UTF-32BE"', 415],
  ['application/json; boundary=x ; Charset = utf-16le', 415],
])('a body of the type %s is answered with %i', async (type, status, payload: string | Buffer = '{}') => {
  const app = Fastify();
  app.setErrorHandler((error, _request, reply) =>
    reply.code(error instanceof SwitchyardError ? errorCatalogue[error.code].status : 500).send({ message: String(error) }),
  );
  parseJsonBodies(app, { limitBytes: 64, grew: () => {}, mayBeEmpty: false });
  app.post('/', async () => 'read');
  const { statusCode } = await app.inject({ method: 'POST', url: '/', headers: { 'content-type': type }, payload });
  await app.close();

  expect(statusCode).toBe(status);
});

it.each([
  ['too many levels', '['.repeat(2_000_000), 'depth', 0],
  ['too many values', `["€",${'{},'.repeat(700_000)}0]`, 'values', 0],
  ['no JSON', '[1,2'.repeat(10), 'Body is not valid JSON', 1],
  ['a prototype', '{"__proto__":{}}', 'the body has a key that would set a prototype', 1],
])('a body with %s is parsed no more often than needed', async (_, payload, problem, times) => {
  const app = Fastify();
  const by = { depth: 200, values: 100_000 };
  parseJsonBodies(app, { limitBytes: 32_000_000, grew: () => {}, mayBeEmpty: false, bounded: { by, refusal: ({ bound }) => new Error(bound) } });
  app.post('/', async () => 'read');
  const parse = vi.spyOn(JSON, 'parse');
  const { body } = await app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, payload });
  const parsed = parse.mock.calls.filter(([text]) => text === payload).length;
  parse.mockRestore();
  await app.close();

  expect(JSON.parse(body).message).toContain(problem);
  expect(parsed).toBe(times);
});
