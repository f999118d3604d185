import { describe, expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { readSettings } from '#shared/config/settings.ts';
import { tracingConfigOf, tracingSettings } from '#shared/config/tracing-settings.ts';
import { localTrace } from '#shared/contracts/local-trace.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { LocalTraces } from '#shared/telemetry/local-traces.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { tracingTo } from '#shared/telemetry/open-tracing.ts';
import { environment, KEY } from '../test-support/harness.ts';
import { authorization, hello, useGateway } from '../test-support/use-gateway.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const MANAGEMENT = { authorization: `Bearer ${environment.KEY_MANAGEMENT}` };
const config = tracingConfigOf(readSettings(tracingSettings, {}));

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

describe('GET /api/v1/traces', () => {
  it('shows traces to a management key, and to no other', async () => {
    await gateway.reopen({ tracing: await tracingTo(null, { config, service: 'test', log: silentLog }, new LocalTraces({ limits: config.otel.limits })) });
    const { app } = gateway.opened;
    const answered = gateway.post(hello, { traceparent: `00-${TRACE}-b7ad6b7169203331-01` });
    await gateway.answerNext();
    await answered;
    const statusOf = async (url: string, headers: Record<string, string>) => (await app.inject({ url, headers })).statusCode;
    expect([await statusOf('/api/v1/traces', {}), await statusOf(`/api/v1/traces/${TRACE}`, {})]).toEqual([401, 401]);
    expect([await statusOf('/api/v1/traces', { authorization: `Bearer ${KEY}` }), await statusOf(`/v1/traces/${TRACE}`, { authorization })]).toEqual([
      403, 403,
    ]);

    await expect.poll(async () => (await app.inject({ url: '/api/v1/traces', headers: MANAGEMENT })).json().traces.length, { timeout: 60_000 }).toBe(1);
    const one = localTrace.parse((await app.inject({ url: `/v1/traces/${TRACE}`, headers: MANAGEMENT })).json());
    expect(one.spans.map(({ name }) => name)).toContain('POST /api/v1/chat/completions');
    expect(await statusOf('/api/v1/traces?limit=9999', MANAGEMENT)).toBe(400);
  });

  it('is 404 where none are kept', async () => {
    const reply = await gateway.opened.app.inject({ url: '/api/v1/traces', headers: MANAGEMENT });
    expect([reply.statusCode, reply.json().error.message]).toEqual([404, expect.stringContaining('TRACES_LOCAL')]);
  });
});
