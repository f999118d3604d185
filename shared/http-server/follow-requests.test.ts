import fastify from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { openMetrics } from '../telemetry/open-metrics.ts';
import { seriesOf } from '../telemetry/series-of.ts';
import { followRequests } from './follow-requests.ts';

it('DESIGN 12: counts requests by the pattern of their route, one for all unknown paths, and no probes', async () => {
  const metrics = openMetrics();
  const app = fastify();
  onTestFinished(() => app.close());
  followRequests(app, { server: 'agent', metrics });
  app.get('/sessions/:session_id', async () => ({}));
  app.get('/health', { config: { isPublic: true } }, async () => ({}));
  for (const url of ['/sessions/ses_1', '/sessions/ses_2', '/health', '/a', '/b?c=d']) await app.inject(url);

  const of = async (name: string) => seriesOf(await metrics.text(), `switchyard_${name}`).sort();
  await expect
    .poll(() => of('http_requests_total'), { timeout: 60_000, interval: 5 })
    .toEqual(['{server="agent",method="GET",route="/sessions/:session_id",status="200"} 2', '{server="agent",method="GET",route="none",status="404"} 2']);
  expect(await of('http_request_duration_seconds_count')).toEqual(['{server="agent",route="/sessions/:session_id"} 2', '{server="agent",route="none"} 2']);
});
