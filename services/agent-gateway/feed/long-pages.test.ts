import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { closeApp } from '#shared/http-server/serve.ts';
import { memoryCache } from '#shared/storage/memory/memory-cache.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { buildApp } from '../app.ts';
import { assemble } from '../components.ts';
import { limits } from '../limits.ts';
import { RequestsInFlight } from '../requests-in-flight.ts';
import { BEARER, newSession, openTestDeployment, type TestDeployment } from '../test-support/test-deployment.ts';
import { until } from '../test-support/until.ts';

/** Of one to four bytes a character. */
const TEXT = 'a\u00e4\u20ac\u{1f600}';
const EVENTS = 60;
const EVENT_CHARACTERS = 50_000;

const inFlight = new RequestsInFlight();
const errors: object[] = [];
let deployment: TestDeployment;
let app: FastifyInstance;
let events: ConversationEvent[];
let pageUrl: string;
beforeAll(async () => {
  const database = await openTestDatabase();
  deployment = await openTestDeployment({ database, bus: await openMemoryBus({ database, clock: systemClock }), cache: memoryCache({ clock: systemClock }) });
  const deps = deployment.deps({ log: { ...silentLog, error: (fields: object) => void errors.push(fields) } });
  app = buildApp(deps, assemble(deps));
  inFlight.follow(app);
  const { origin } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const sessionId = await newSession(app);
  const event = { kind: 'assistant_message', text: TEXT.repeat(EVENT_CHARACTERS / TEXT.length) } as const;
  events = await deployment.owner.append(sessionId, ...Array.from({ length: EVENTS }, () => event));
  pageUrl = `${origin}/sessions/${sessionId}/events`;
});
afterAll(async () => {
  await closeApp(app, limits.cutAfterMs);
  await deployment.close();
});

/** A request for the page, and the head of its answer. */
async function ask() {
  const request = get(pageUrl, { headers: BEARER }).on('error', () => {});
  const response = await new Promise<IncomingMessage>((resolve, reject) => request.once('response', resolve).once('error', reject));
  return { request, response };
}

describe('a page over 256 Ki characters', () => {
  it('is chunked, and has the bytes of its events', async () => {
    const { response } = await ask();

    expect(response.headers).toMatchObject({ 'transfer-encoding': 'chunked', 'content-type': 'application/json; charset=utf-8' });
    const page = await buffer(response);
    const sent: unknown[] = JSON.parse(page.toString());
    expect(sent.length).toBeGreaterThan(5);
    expect(page.equals(Buffer.from(JSON.stringify(events.slice(0, sent.length))))).toBe(true);
  });

  it('is given up when its client disconnects behind the first chunk', async () => {
    const { request, response } = await ask();
    await new Promise((resolve) => response.once('data', resolve));
    expect(inFlight.count).toBeGreaterThan(0);

    request.destroy();

    await until(() => inFlight.count === 0, 'no request in flight');
    expect(errors).toEqual([]);
    expect((await buffer((await ask()).response)).length).toBeGreaterThan(1_000_000);
  });
});
