import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { answerError, openHandMadeServer } from '../test-support/tool-server-doubles.ts';
import { withAttempts } from './attempts.ts';
import { ToolServer } from './tool-server.ts';
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
