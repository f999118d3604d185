import Fastify from 'fastify';
import { expect, it, vi } from 'vitest';
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
