import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { addressOf, requestBytes } from '../http/request.mjs';
import { steadyRate } from './steady-rate.mjs';

let close = () => {};
afterEach(() => close());

async function loadOn(respond: (response: ServerResponse) => void) {
  const server = createServer((_, response) => respond(response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  close = () => {
    server.close();
    server.closeAllConnections();
  };
  const address = addressOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const request = requestBytes({ address, path: '/', body: '{}' });
  return { address, request, isRight: (text: string) => text === 'ok', perSecond: 200, times: { warmMs: 0, measureMs: 500 }, roots: [] };
}

it('begins requests at their times, though none has been answered', async () => {
  const waiting: ServerResponse[] = [];
  let isOver = false;
  const load = await loadOn((response) => (isOver ? response.end('ok') : waiting.push(response)));
  let begun = 0;
  const onEnd = async () => {
    await expect.poll(() => waiting.length).toBeGreaterThan(1);
    isOver = true;
    begun = waiting.length;
    for (const response of waiting) response.end('ok');
  };
  const { failures } = await steadyRate({ ...load, hooks: { onEnd } });

  expect(begun).toBeGreaterThan(1);
  expect(failures.count).toBe(0);
});

it('counts what is answered wrongly as failed, and not as done', async () => {
  let answered = 0;
  const load = await loadOn((response) => {
    answered += 1;
    response.writeHead(402).end('no credit');
  });
  const { count, failures } = await steadyRate({ ...load, hooks: { onEnd: () => expect.poll(() => answered).toBeGreaterThan(0) } });

  expect(count).toBe(0);
  expect(failures.count).toBeGreaterThan(0);
  expect(failures.messages[0]).toContain('402');
});
