import fastify from 'fastify';
import { expect, it, vi } from 'vitest';
import { knownError } from '#shared/http-server/error-replies.ts';
import { acceptJsonOnly } from './bounded-bodies.ts';
import { agentErrors, replyTo } from './error-reply.ts';

const CLIENTS = 20;

it('DESIGN 13: large bodies that complete together are handled one per tick, and small ones do not wait for them', async () => {
  const app = fastify({ bodyLimit: 1_048_576 });
  acceptJsonOnly(app);
  let turn = 0;
  let next = setImmediate(function count() {
    turn += 1;
    next = setImmediate(count);
  });
  const handledIn: { name: string; turn: number }[] = [];
  app.post<{ Body: { name: string } }>('/', async ({ body }) => {
    handledIn.push({ name: body.name, turn });
    return {};
  });
  await app.ready();

  const post = (name: string, sizeBytes: number) => app.inject({ method: 'POST', url: '/', payload: { name, text: 'x'.repeat(sizeBytes) } });
  const large = Array.from({ length: CLIENTS }, () => post('large', 200_000));
  const replies = await Promise.all([...large, post('small', 10)]);
  clearImmediate(next);

  expect(replies.map(({ statusCode }) => statusCode)).toEqual(replies.map(() => 200));
  const turns = handledIn.filter(({ name }) => name === 'large').map((handled) => handled.turn);
  expect(new Set(turns).size).toBe(CLIENTS);
  expect(handledIn.findIndex(({ name }) => name === 'small')).toBeLessThan(CLIENTS);
  await app.close();
});

it.each([
  ['valid', `{"é":[0,{"x":${'['.repeat(300_000)}${']'.repeat(300_000)}}]}`, { error: expect.stringContaining('must not be nested deeper than 64 levels') }],
  ['with a name that is none', `{"\u0001":[0,{"x":${'['.repeat(600_000)}`, { error: 'the body is not valid JSON' }],
])('a large body that is nested too deeply is refused before it is parsed: %s', async (_, payload, reply) => {
  const app = fastify({ bodyLimit: 1_048_576 });
  app.setErrorHandler((error, _request, response) => response.code(400).send(replyTo(knownError(error, agentErrors)).body));
  acceptJsonOnly(app);
  app.post('/', async () => ({}));
  const parse = vi.spyOn(JSON, 'parse');
  const response = await app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, payload });
  const parsed = parse.mock.calls.filter(([text]) => text === payload).length;
  parse.mockRestore();
  await app.close();

  expect(response.json()).toMatchObject({ code: 'validation_failed', ...reply });
  if (payload.includes('é')) expect(response.json().path).toBe(`/é/1/x${'/0'.repeat(61)}`);
  expect(parsed).toBe(0);
});
