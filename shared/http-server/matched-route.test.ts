import { type FastifyRequest, fastify } from 'fastify';
import { expect, it } from 'vitest';
import { matchedRoute, workKindOf } from './matched-route.ts';

/** An app that notes what its first hook is told of each request. */
function open() {
  const noted: { url: string | undefined; isPublic: boolean; kind: string }[] = [];
  const note = (request: FastifyRequest) => {
    const { url, isPublic } = matchedRoute(request);
    noted.push({ url, isPublic, kind: workKindOf(request) });
  };
  const app = fastify();
  app.addHook('onRequest', async (request) => note(request));
  app.route({ method: ['GET', 'PUT'], url: '/things/:id', handler: async () => '' });
  app.get('/health', { config: { isPublic: true } }, async () => '');
  return { app, noted };
}

it('names the template of a route, and each of its methods apart', async () => {
  const { app, noted } = open();
  for (const method of ['GET', 'PUT', 'HEAD', 'GET'] as const) await app.inject({ method, url: '/things/17' });

  expect(noted.map(({ url }) => url)).toEqual(['/things/:id', '/things/:id', '/things/:id', '/things/:id']);
  expect(noted.map(({ kind }) => kind)).toEqual(['GET /things/:id', 'PUT /things/:id', 'HEAD /things/:id', 'GET /things/:id']);
});

it('tells probes and unknown paths from other requests, whatever the path is', async () => {
  const { app, noted } = open();
  for (const url of ['/health', '/secret-1', '/secret-2']) await app.inject({ method: 'GET', url });

  expect(noted).toEqual([
    { url: '/health', isPublic: true, kind: 'GET /health' },
    { url: undefined, isPublic: false, kind: 'unknown route' },
    { url: undefined, isPublic: false, kind: 'unknown route' },
  ]);
});
