import fastify from 'fastify';
import { expect, it } from 'vitest';
import { acceptJsonOnly } from './bounded-bodies.ts';

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
