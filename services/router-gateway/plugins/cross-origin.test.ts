import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { testConfig } from '../test-support/harness.ts';
import { authorization, hello, useGateway } from '../test-support/use-gateway.ts';

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

const LISTED = 'https://app.example.com';
const PREFIXES = ['/api/v1', '/v1'];
const listing = () => gateway.reopen({ config: { ...testConfig, cors: { origins: [LISTED, 'http://localhost:3000'] } } });
const refused = (message = expect.stringContaining('cors.origins')) => ({
  error: { code: 400, message, type: 'invalid_request', param: 'origin', metadata: { error_type: 'invalid_request' } },
});
const preflight = (url: string, origin: string, host = 'router.example.com') =>
  gateway.opened.app.inject({
    method: 'OPTIONS',
    url,
    headers: { host, origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization,content-type,x-stainless-lang' },
  });

describe.each(PREFIXES)('below %s', (prefix) => {
  it.each([
    ['another page', 'https://app.example.com.evil.example'],
    ['another scheme', 'http://app.example.com'],
    ['another port', 'https://app.example.com:8443'],
    ['a page without an origin of its own', 'null'],
    ['nothing', ''],
    ['the end of the own host', 'https://example.com'],
  ])('refuses the request and the preflight of %s', async (_, origin) => {
    await listing();
    const host = 'router.example.com';
    const headers = { host, origin, authorization };
    const asked = await gateway.opened.app.inject({ method: 'POST', url: `${prefix}/chat/completions`, headers, payload: hello });
    const withoutKey = await gateway.opened.app.inject({ method: 'GET', url: `${prefix}/models`, headers: { host, origin } });

    for (const response of [asked, withoutKey, await preflight(`${prefix}/chat/completions`, origin)]) {
      expect([response.statusCode, response.json()]).toEqual([400, refused()]);
      expect(response.headers['access-control-allow-origin']).toBeUndefined();
      expect(response.headers.vary).toBe('Origin');
    }
  });

  it('refuses all pages of others by default', async () => {
    expect((await preflight(`${prefix}/models`, LISTED)).statusCode).toBe(400);
  });

  it('answers the preflight of a listed page', async () => {
    await listing();
    const response = await preflight(`${prefix}/chat/completions`, LISTED);

    expect([response.statusCode, response.body]).toEqual([204, '']);
    expect(response.headers).toMatchObject({
      'access-control-allow-origin': LISTED,
      'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
      'access-control-allow-headers': 'authorization,content-type,x-stainless-lang',
      vary: 'Origin, Access-Control-Request-Headers',
    });
  });

  it.each([false, true])('shows a listed page the response and its headers, stream: %s', async (stream) => {
    await listing();
    const headers = { origin: LISTED, authorization };
    const answering = gateway.opened.app.inject({ method: 'POST', url: `${prefix}/chat/completions`, headers, payload: { ...hello, stream } });
    const held = await gateway.worker.next();
    if (stream) {
      held.frame('content', 0, 'Hi');
      held.frame('done', 1, '[DONE]');
    } else held.body(200, { id: 'x' });
    const response = await answering;

    expect(response.statusCode).toBe(200);
    expect(response.headers['content-type']).toContain(stream ? 'text/event-stream' : 'application/json');
    expect(response.headers).toMatchObject({ 'access-control-allow-origin': LISTED, vary: 'Origin', 'x-generation-id': held.call.callId });
    const exposed = String(response.headers['access-control-expose-headers']).split(', ');
    for (const name of ['x-generation-id', 'x-request-id', 'retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']) {
      expect(exposed).toContain(name);
    }
    expect(exposed).toContain('x-switchyard-ignored');
  });

  it('shows a listed page refusals, of keys and of unknown paths', async () => {
    await listing();
    for (const [url, status] of [
      [`${prefix}/models`, 401],
      [`${prefix}/nothing`, 404],
    ] as const) {
      const response = await gateway.opened.app.inject({ method: 'GET', url, headers: { origin: LISTED } });

      expect([response.statusCode, response.headers['access-control-allow-origin']]).toEqual([status, LISTED]);
    }
  });

  it.each(['https', 'http'])('admits pages of its own host, by %s, without naming an origin', async (scheme) => {
    const headers = { host: 'router.example.com:8443', origin: `${scheme}://router.example.com:8443`, authorization };
    const response = await gateway.opened.app.inject({ method: 'GET', url: `${prefix}/models`, headers });

    expect([response.statusCode, response.headers['access-control-allow-origin']]).toEqual([200, undefined]);
  });

  it('adds nothing to responses without an origin', async () => {
    await listing();
    const { headers } = await gateway.opened.app.inject({ method: 'GET', url: `${prefix}/models`, headers: { authorization } });

    expect(Object.keys(headers).filter((name) => name === 'vary' || name.startsWith('access-control'))).toEqual([]);
  });
});
