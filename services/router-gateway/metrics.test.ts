import { expect, it } from 'vitest';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openMetrics } from '#shared/telemetry/open-metrics.ts';
import { seriesOf } from '#shared/telemetry/series-of.ts';
import { authorization, CHAT, hello, useGateway } from './test-support/use-gateway.ts';

// Bounds for a busy machine; none of these waits for time to pass.
const eventually = <Value>(probe: () => Value) => expect.poll(probe, { timeout: 60_000, interval: 5 });

const gateway = useGateway(async () => {
  const database = await openTestDatabase();
  const bus = await openMemoryBus({ database, clock: systemClock });
  return { bus, close: () => bus.close().then(() => database.close()) };
});

async function withMetrics() {
  const metrics = openMetrics();
  await gateway.reopen({ metrics });
  return { of: async (name: string) => seriesOf(await metrics.text(), `switchyard_${name}`) };
}

it('DESIGN 12: counts requests by the pattern of their route, one for all unknown paths, and no probes', async () => {
  const { of } = await withMetrics();
  for (const url of ['/api/v1/a', '/api/v1/b', '/c?d=e', '/health/live', '/health/ready']) await gateway.opened.app.inject({ method: 'GET', url });
  await gateway.opened.app.inject({ method: 'GET', url: '/api/v1/generations/gen-x/stream', headers: { authorization } });

  await eventually(async () => (await of('http_requests_total')).sort()).toEqual([
    '{server="router",method="GET",route="/api/v1/generations/:generation_id/stream",status="404"} 1',
    '{server="router",method="GET",route="none",status="404"} 3',
  ]);
  expect(await of('http_request_duration_seconds_count')).toHaveLength(2);
});

it('DESIGN 12: counts a stream for as long as it is open, and measures its first content once', async () => {
  const { of } = await withMetrics();
  const open = async () => (await of('streams_open'))[0];
  const answer = gateway.post({ ...hello, stream: true });
  const held = await gateway.worker.next();
  expect([await open(), await of('first_token_seconds_count')]).toEqual(['{kind="router_stream"} 1', ['0']]);
  held.frame('open', 1, 'role');
  held.frame('content', 2, 'Hi');
  held.frame('content', 3, ' there');
  held.frame('done', 4, 'stop');
  const { body } = await answer;

  expect(body).toContain('there');
  await eventually(open).toBe('{kind="router_stream"} 0');
  expect(await of('first_token_seconds_count')).toEqual(['1']);
});

it('measures no first content of a whole answer, and of a stream without content', async () => {
  const { of } = await withMetrics();
  const whole = gateway.post(hello);
  await gateway.answerNext();
  await whole;
  const failed = gateway.post({ ...hello, stream: true });
  (await gateway.worker.next()).error(1, 502);
  await failed;

  expect([await of('first_token_seconds_count'), await of('streams_open')]).toEqual([['0'], ['{kind="router_stream"} 0']]);
  await eventually(async () => (await of('http_requests_total')).sort()).toEqual([
    `{server="router",method="POST",route="${CHAT}",status="200"} 1`,
    `{server="router",method="POST",route="${CHAT}",status="502"} 1`,
  ]);
});
