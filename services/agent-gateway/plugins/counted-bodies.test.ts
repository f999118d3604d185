import fastify, { type FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import { limits } from '../limits.ts';
import { agentBodies, boundBodies } from './bounded-bodies.ts';

it('of bodies without a key, only the oldest gives way when it is the one that grows beyond their bytes', async () => {
  const app = fastify();
  boundBodies(app, agentBodies({ unkeyedBodyMs: 600_000 }));
  const begun: FastifyRequest[] = [];
  const goOn: (() => void)[] = [];
  app.addHook('onRequest', (request, _reply, done) => {
    begun.push(request);
    goOn.push(done);
  });
  app.post('/', { config: { isSigned: true } }, async () => 'read');
  const names = ['oldest', 'second', 'third'];
  const replies = names.map(() => app.inject({ method: 'POST', url: '/', headers: { 'content-type': 'application/json' }, payload: '1' }));
  await expect.poll(() => begun.length).toBe(names.length);
  const failed: string[] = [];
  const [oldest, second, third] = begun.map(({ countedBody }, index) => {
    countedBody?.reading(() => failed.push(names[index] ?? ''));
    return countedBody;
  });

  oldest?.grew(1);
  second?.grew(1_000_000);
  third?.grew(limits.bufferedUnkeyedBytes - 1_000_101);
  expect(failed).toEqual([]);
  oldest?.grew(60_000);
  expect(failed).toEqual(['oldest']);
  third?.grew(60_000);
  expect(failed).toEqual(['oldest', 'second']);

  for (const next of goOn) next();
  await Promise.all(replies);
  await app.close();
});
