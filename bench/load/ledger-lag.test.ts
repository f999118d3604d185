import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { LedgerLag } from './ledger-lag.mjs';

let close = () => {};
afterEach(() => close());

/** A worker whose metrics have these lags, one after the other; null: without the gauge. */
async function workerWith(lags: (number | null)[]): Promise<string> {
  const server = createServer((_, response) => {
    const lag = lags.shift() ?? null;
    response.end(`switchyard_usage_backlog 3\n${lag === null ? '' : `switchyard_usage_backlog_age_seconds ${lag}\n`}switchyard_other 9\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => {
    server.close();
    server.closeAllConnections();
  };
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('is the most that a router worker has shown', async () => {
  const lag = new LedgerLag([
    { role: 'router-gateway', managementUrl: 'http://127.0.0.1:1' },
    { role: 'router-worker', managementUrl: await workerWith([0.5, 4.25, 1]) },
  ]);
  for (let read = 0; read < 3; read += 1) await lag.end();

  expect(lag.figures()).toEqual({ mostSeconds: 4.25, unread: 0 });
});

it('is not 0 where it could not be read', async () => {
  const lag = new LedgerLag([{ role: 'router-worker', managementUrl: await workerWith([]) }]);
  await lag.end();
  close();
  await lag.end();

  expect(lag.figures()).toEqual({ mostSeconds: null, unread: 2 });
});
