import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject, it } from 'vitest';
import { outage, WORKERS } from '../../services/router-worker/call/health/test-support/outage.ts';
import { openRedis } from '../../shared/storage/redis/open-redis.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';

/** When Redis is cut off, and when it is back; the upstream fails from 10 s to 50 s. */
const AWAY_AT_MS = 20_000;
const BACK_AT_MS = 40_000;

it('an upstream that fails for 40 s of real time is left and taken back, with Redis cut off meanwhile', async () => {
  const url = new URL(inject('redisUrl'));
  const proxy = await tcpProxy(Number(url.port));
  url.port = String(proxy.port);
  const cache = await openRedis({ url: url.href, log: silentLog, keyPrefix: `test-${randomUUID()}:` });
  const pause = (ms: number) => delay(ms);
  const { failures, backAfterMs, callsFailed } = await outage({ nowMs: () => Date.now(), pause, cache, isTimed: true }, (atMs) => {
    if (atMs >= AWAY_AT_MS && atMs < BACK_AT_MS) proxy.freeze();
    else proxy.thaw();
  });
  await cache.close();
  await proxy.close();
  expect(callsFailed).toBe(0);
  expect(failures).toHaveLength(WORKERS);
  expect(Math.max(...failures)).toBeLessThanOrEqual(10);
  expect(backAfterMs).toHaveLength(WORKERS);
  // 35 s by a clock of its own in the tests of the breaker; timers of a busy machine are late.
  expect(Math.max(...backAfterMs)).toBeLessThanOrEqual(60_000);
}, 240_000);
