import { fastify } from 'fastify';
import { expect, it } from 'vitest';
import { knowAddresses } from './known-addresses.ts';

it.each([
  ['/models', ['GET', 'PUT']],
  ['/%6dodels?q=%6d', ['GET', 'PUT']],
  ['/keys/%61%2Fb', ['DELETE']],
  ['/keys%2Fa', []],
  ['/models/%zz', []],
])('finds the methods at %s as the router does', async (url, methods) => {
  const app = fastify();
  knowAddresses(app);
  app.get('/models', async () => 'found');
  app.put('/models', async () => 'found');
  app.delete('/keys/:id', async () => 'found');

  expect(app.knownAddresses.methodsAt(url)).toEqual(methods);
  for (const method of ['GET', 'PUT', 'DELETE'] as const) expect((await app.inject({ method, url })).body === 'found').toBe(methods.includes(method));
});
