import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
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

it.each([
  ['has broken before', false],
  ['the app cuts itself', true],
])('has noted a connection that %s when the app is closed', async (_, isCut) => {
  const metrics = openMetrics();
  const app = fastify();
  onTestFinished(() => app.close());
  const ended: string[] = [];
  followRequests(app, { server: 'agent', metrics, onEnd: ({ url }) => void ended.push(url) });
  app.get('/slow', (_, reply) => void reply.hijack());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const arrived = once(app.server, 'request');
  const client = connect(port, '127.0.0.1');
  client.write('GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const [, response] = await arrived;
  const closed = once(response, 'close');
  const closing = isCut ? app.close() : null;
  if (isCut) app.server.closeAllConnections();
  else client.destroy();
  await closed;
  await (closing ?? app.close());

  expect(ended).toEqual(['/slow']);
  expect(seriesOf(await metrics.text(), 'switchyard_http_requests_total')).toEqual(['{server="agent",method="GET",route="/slow",status="200"} 1']);
});
