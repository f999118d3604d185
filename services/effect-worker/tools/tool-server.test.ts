import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import type { Bundle } from '#shared/config/load-bundle.ts';
import { answerError, openHandMadeServer } from '../test-support/tool-server-doubles.ts';
import { withAttempts } from './attempts.ts';
import { ToolServer } from './tool-server.ts';
import { ToolServers } from './tool-servers.ts';
import { openWatchedFetch } from './watched-fetch.ts';

/** More than the failures that open the breaker. */
const CALLS = 8;
/** JSON-RPC: servers of the older era know no probe. */
const METHOD_NOT_FOUND = -32_601;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A server with sessions whose first `ended` openings end without a response. */
async function serverThatEnds(ended: number): Promise<{ server: ToolServer; openings(): number }> {
  let openings = 0;
  const end = (response: ServerResponse) => void response.socket?.destroy();
  const double = await openHandMadeServer((message, response) => (message.method === 'initialize' && openings <= ended ? end(response) : undefined), {
    onProbe: (message, response) => {
      openings += 1;
      if (openings <= ended) end(response);
      else answerError(response, message, METHOD_NOT_FOUND, 'Method not found');
    },
  });
  const fetcher = openWatchedFetch({ environment: {}, nowMs: () => systemClock.nowMs() });
  const server = new ToolServer({ url: new URL(`http://127.0.0.1:${double.port}/mcp`), bearer: null, fetcher, clock: systemClock });
  closing.push(
    () => server.close(),
    () => fetcher.close(),
    () => double.close(),
  );
  return { server, openings: () => openings };
}

function calls(server: ToolServer): Promise<string[]> {
  const attempts = { repeatable: false, signal: new AbortController().signal, deadlineAtMs: Number.POSITIVE_INFINITY, clock: systemClock };
  return Promise.all(Array.from({ length: CALLS }, () => withAttempts(attempts, () => server.connected(async () => 'answered'))));
}

describe('a connection that several calls wait for', () => {
  it('counts once for the breaker when it fails, so that each call has its further tries', async () => {
    const { server, openings } = await serverThatEnds(1);

    expect(await calls(server)).toEqual(Array.from({ length: CALLS }, () => 'answered'));
    expect(openings()).toBe(2);
  });

  it('fails all of them when the tries are used up', async () => {
    const { server } = await serverThatEnds(Number.POSITIVE_INFINITY);

    await expect(calls(server)).rejects.toMatchObject({ kind: 'unreachable' });
  });
});

it('is tried again after the same pause when the clock is set back by an hour meanwhile', async () => {
  let [setBackMs, aheadMs, openings] = [0, 0, 0];
  const double = await openHandMadeServer(() => undefined, {
    onProbe: (_, response) => {
      openings += 1;
      response.socket?.destroy();
    },
  });
  const clock = { nowMs: () => systemClock.nowMs() - setBackMs };
  const servers = new ToolServers({ environment: {}, clock, intervalClock: { nowMs: () => aheadMs } });
  closing.push(
    () => servers.close(),
    () => double.close(),
  );
  const mcps = [{ id: 'crm', hostname: 'http://127.0.0.1', port: double.port, path: '/mcp', api_key: null }];
  const server = servers.of({ body: { manifest: { agent_config: { mcps } } } } as unknown as Bundle, 'crm');
  const isTried = async () => {
    const before = openings;
    await expect(server?.connected(async () => 'answered')).rejects.toMatchObject({ kind: 'unreachable' });
    return openings > before;
  };
  for (let failures = 0; failures < 5; failures += 1) expect(await isTried()).toBe(true);
  expect(await isTried()).toBe(false);
  setBackMs = 3_600_000;
  aheadMs = 10_000;

  expect(await isTried()).toBe(true);
});
