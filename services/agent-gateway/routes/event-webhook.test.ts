import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { checkOutboundUrl } from '#shared/http/outbound-guard.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { BUNDLE_HASH } from '../test-support/bundle.ts';
import { BEARER, newSession, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';

const URL = 'https://receiver.example/events';
const checkCallbackUrl = (url: string, hosts: readonly string[] | null) => void checkOutboundUrl(url, { allowHosts: new Set() }, hosts);

let deployment: TestDeployment;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
});
afterEach(() => deployment.closeApps());
afterAll(() => deployment.close());

function send(method: 'POST' | 'PUT', url: string, body: unknown, headers: Record<string, string> = {}) {
  const payload = JSON.stringify(body);
  return deployment.app({ checkCallbackUrl }).inject({ method, url, headers: { ...BEARER, 'content-type': 'application/json', ...headers }, payload });
}

const put = (sessionId: string, body: unknown, headers: Record<string, string> = {}) => send('PUT', `/sessions/${sessionId}/event_webhook`, body, headers);
const commandsOf = (type: string) => deployment.owner.commands.filter((command) => command.type === type);

describe('PUT /sessions/{id}/event_webhook', () => {
  it('passes address and offset to the owner, and answers with what it has set', async () => {
    const id = await newSession(deployment.app());
    const reply = await put(id, { url: URL, from_offset: 0 });

    expect(reply.statusCode).toBe(200);
    expect(reply.json()).toEqual({ url: URL, from_offset: 0 });
    expect(commandsOf('event-webhook.set').at(-1)).toMatchObject({ sessionId: id, url: URL, fromOffset: 0, bundleHash: BUNDLE_HASH });
  });

  it('takes a null address, which ends it, and an absent offset', async () => {
    const id = await newSession(deployment.app());
    expect((await put(id, { url: null })).statusCode).toBe(200);
    expect(commandsOf('event-webhook.set').at(-1)).toMatchObject({ url: null, fromOffset: null });
  });

  it.each([
    ['no address', {}, '/url'],
    ['an address that is a number', { url: 7 }, '/url'],
    ['an address that is none', { url: 'receiver' }, '/url'],
    ['http', { url: 'http://receiver.example/' }, '/url'],
    ['an address of this network', { url: 'https://127.0.0.1/' }, '/url'],
    ['a user in the address', { url: 'https://a:b@receiver.example/' }, '/url'],
    ['an offset below 0', { url: URL, from_offset: -1 }, '/from_offset'],
    ['an offset that is a fraction', { url: URL, from_offset: 0.5 }, '/from_offset'],
    ['an offset past the end', { url: URL, from_offset: 1_000_000 }, '/from_offset'],
    ['another field', { url: URL, offset: 1 }, '/offset'],
  ])('refuses %s and names it', async (_case, body, path) => {
    const id = await newSession(deployment.app());
    const reply = await put(id, body);

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path });
  });

  it('answers 404 for an unknown session before anything else', async () => {
    expect((await put('ses_none', { url: 7 })).statusCode).toBe(404);
    expect((await put('ses..none', { url: URL })).statusCode).toBe(404);
  });

  it('applies a repeated key once', async () => {
    const id = await newSession(deployment.app());
    const key = { 'idempotency-key': 'again' };
    await put(id, { url: URL, from_offset: 0 }, key);
    const reply = await put(id, { url: URL, from_offset: 0 }, key);

    expect(reply.json()).toEqual({ url: URL, from_offset: 0 });
    expect(new Set(commandsOf('event-webhook.set').flatMap((one) => (one.sessionId === id ? [one.commandId] : []))).size).toBe(1);
  });
});

describe('event_webhook_url at creation', () => {
  it('goes with the command of the session', async () => {
    expect((await send('POST', '/sessions', { event_webhook_url: URL })).statusCode).toBe(201);
    expect(commandsOf('session.create').at(-1)).toMatchObject({ eventWebhookUrl: URL });
    expect((await send('POST', '/sessions', { event_webhook_url: null })).statusCode).toBe(201);
    expect(commandsOf('session.create').at(-1)).not.toHaveProperty('eventWebhookUrl');
  });

  it.each([
    ['http', 'http://receiver.example/'],
    ['an address of this network', 'https://10.0.0.1/'],
    ['a number', 7],
  ])('refuses %s', async (_case, url) => {
    const reply = await send('POST', '/sessions', { event_webhook_url: url });

    expect(reply.statusCode).toBe(400);
    expect(reply.json()).toMatchObject({ code: 'validation_failed', path: '/event_webhook_url' });
  });
});
