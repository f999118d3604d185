import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openApiDocument, routesOf } from '#shared/http-server/test-support/openapi-document.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { agentApi } from '../test-support/openapi-document.ts';
import { BEARER, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { operations } from './operations.ts';

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterAll(() => deployment.close());

describe('the published description', () => {
  it('has an operation for each route, and a route for each operation', async () => {
    const app = deployment.app();
    const routes = routesOf(app);
    await app.ready();
    expect([...routes.keys()].sort()).toEqual(Object.keys(operations).sort());
  });

  it('is what the code says: npx vitest run openapi.test --update writes it', async () => {
    const app = deployment.app();
    const routes = routesOf(app);
    await app.ready();
    const text = `${JSON.stringify(await openApiDocument(routes, agentApi), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot(`../../../schemas/agent-server/${agentApi.version}/openapi.json`);
  });

  it('is served behind the key, as JSON and as a page', async () => {
    const app = deployment.app();
    expect((await app.inject('/openapi.json')).statusCode).toBe(401);
    expect((await app.inject('/docs')).statusCode).toBe(401);
    const reply = await app.inject({ url: '/openapi.json', headers: BEARER });
    expect(reply.headers['content-type']).toMatch('application/json');
    expect(reply.json()).toMatchObject({ openapi: '3.1.0', info: { version: agentApi.version } });
    const again = await app.inject({ url: '/openapi.json', headers: { ...BEARER, 'if-none-match': String(reply.headers['etag']) } });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    const page = await app.inject({ url: '/docs', headers: BEARER });
    expect(page.headers['content-type']).toMatch('text/html');
    for (const name of Object.keys(operations)) expect(page.body).toContain(name.replaceAll('&', '&amp;'));
    expect(page.body).not.toContain('<script');
  });
});
