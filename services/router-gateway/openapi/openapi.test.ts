import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openApiDocument, routesOf } from '#shared/http-server/test-support/openapi-document.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openTestApp, type TestApp } from '../test-support/harness.ts';
import { publishedPath, routerApi } from '../test-support/router-api.ts';

const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });
let opened: TestApp;
let routes: ReturnType<typeof routesOf>;
let close: () => Promise<void>;

beforeAll(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  opened = openTestApp(bus);
  routes = routesOf(opened.app, publishedPath);
  await opened.app.ready();
  close = async () => {
    await opened.close();
    await bus.close();
    await database.close();
  };
});
afterAll(() => close());

describe('the published description of the router', () => {
  it('has an operation for each route, and a route for each operation', () => {
    expect([...routes.keys()].sort()).toEqual(Object.keys(routerApi.operations).sort());
  });

  it('is what the code says: npx vitest run openapi.test --update writes it', async () => {
    const text = `${JSON.stringify(await openApiDocument(routes, routerApi), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot(`../../../schemas/router/${routerApi.version}/openapi.json`);
  });

  it('is served to any key, also to one that may call no model, and not without one', async () => {
    expect((await opened.app.inject('/openapi.json')).statusCode).toBe(401);
    const [reply, toManagement] = await Promise.all(
      ['sk-test-1', 'sk-test-management'].map((secret) => opened.app.inject({ url: '/openapi.json', headers: bearer(secret) })),
    );
    expect(reply?.headers['content-type']).toMatch('application/json');
    expect(reply?.json()).toMatchObject({ openapi: '3.1.0', info: { version: routerApi.version } });
    expect(toManagement?.body).toBe(reply?.body);
    const headers = { ...bearer('sk-test-1'), 'if-none-match': String(reply?.headers['etag']) };
    const again = await opened.app.inject({ url: '/openapi.json', headers });
    expect([again.statusCode, again.body]).toEqual([304, '']);
  });
});
