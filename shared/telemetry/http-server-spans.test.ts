import fastify from 'fastify';
import { expect, it } from 'vitest';
import { contextOfRequest, traceIdOfRequest, traceparentOfRequest, traceRequests } from './http-server-spans.ts';
import { noTracing } from './tracing.ts';

const TRACEPARENT = /^00-([0-9a-f]{32})-[0-9a-f]{16}-01$/;

it('has one context per request where nothing is recorded, its caller’s when that is valid', async () => {
  const app = fastify();
  traceRequests(app, noTracing);
  app.get('/', async (request) => ({ context: contextOfRequest(request), parent: traceparentOfRequest(request), traceId: traceIdOfRequest(request) }));
  const asked = async (traceparent?: string) => (await app.inject({ url: '/', headers: traceparent === undefined ? {} : { traceparent } })).json();
  const given = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00';

  for (const { context, parent, traceId } of [await asked(), await asked('nonsense')]) {
    expect(parent).toBe(context);
    expect(TRACEPARENT.exec(context)?.[1]).toBe(traceId);
  }
  expect(await asked(given)).toEqual({ context: given, parent: given, traceId: given.split('-')[1] });
  await app.close();
});
