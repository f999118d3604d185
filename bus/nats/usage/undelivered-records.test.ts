import { PermissionViolationError, RequestError } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { silentLog } from '#shared/telemetry/log.ts';
import type { NatsLink } from '../connection/link.ts';
import { UndeliveredRecords } from './undelivered-records.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('warns once when the broker denies its requests, and never when it is away', async () => {
  const [warn, debug] = [vi.fn(), vi.fn()];
  const away = new Error('no connection');
  const denied = new RequestError('denied', { cause: new PermissionViolationError('denied', 'publish', '$JS.API.STREAM.MSG.GET.USAGE') });
  const callApi = vi.fn().mockRejectedValue(denied).mockRejectedValueOnce(away);
  const link = { retries: { callApi } } as unknown as NatsLink;
  const looking = new UndeliveredRecords({ link, handler: async () => {}, maxBatch: 1, ackWaitMs: 1_000, log: { ...silentLog, warn, debug } });
  await vi.advanceTimersByTimeAsync(7_000);
  await looking.stop();

  expect(callApi).toHaveBeenCalledTimes(3);
  expect(debug.mock.calls.map(([{ err }]) => err)).toEqual([away, denied]);
  expect(warn.mock.calls.map(([{ err }]) => err)).toEqual([denied]);
});
