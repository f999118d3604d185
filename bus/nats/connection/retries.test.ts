import { getEventListeners } from 'node:events';
import { JetStreamApiError } from '@nats-io/jetstream';
import { TimeoutError } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { clusterPings } from '../pings.ts';
import { Retries } from './retries.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const BUDGET_MS = 8_000;
const never = new Promise<never>(() => {});

/** @param isDeclared whether a declaration of the streams ends */
function open({ isCluster = true, isDeclared = true } = {}) {
  const link = { isUp: true, declared: 0 };
  const redeclare = () => {
    link.declared += 1;
    return isDeclared ? Promise.resolve() : never;
  };
  const up = (until: AbortSignal) => new Promise<never>((_, reject) => until.addEventListener('abort', () => reject(until.reason)));
  return { link, retries: new Retries({ address: 'nats://there', isCluster, isUp: () => link.isUp, up, redeclare }) };
}

const noLeader = () => new JetStreamApiError({ code: 404, err_code: 10059, description: 'stream not found' });

describe('a request to the API that is not answered', () => {
  it.each([
    { what: 'is sent again in a cluster, whose next leader answers it', isCluster: true, sent: 3 },
    { what: 'is waited for at a single server', isCluster: false, sent: 1 },
  ])('$what', async ({ isCluster, sent }) => {
    const { retries } = open({ isCluster });
    let calls = 0;
    const call = () => {
      calls += 1;
      return calls === 3 ? Promise.resolve('leader') : never;
    };
    const answered = retries.callApi('ask', BUDGET_MS, call);
    await vi.advanceTimersByTimeAsync(800);

    expect(calls).toBe(sent);
    if (isCluster) expect(await answered).toBe('leader');
  });

  it('is sent no more when its budget is over', async () => {
    const { retries } = open();
    let calls = 0;
    const call = () => {
      calls += 1;
      return never;
    };
    const failed = expect(retries.callApi('ask', 1_000, call)).rejects.toMatchObject({
      code: 'service.unreachable',
      message: 'NATS at nats://there did not ask',
    });
    await vi.advanceTimersByTimeAsync(10_000);
    await failed;

    expect(calls).toBe(3);
  });
});

it('a publish does not wait for the election of streams that it does not need', async () => {
  const { link, retries } = open({ isDeclared: false });
  let tries = 0;
  const stored = retries.run('store a message', BUDGET_MS, async () => {
    tries += 1;
    if (tries < 3) throw noLeader();
    return tries;
  });
  await vi.advanceTimersByTimeAsync(1_000);

  expect(await stored).toBe(3);
  expect(link.declared).toBe(2);
});

it('a message is sent again in a cluster only after the time in which a lost leader is given up: a slow one has it', async () => {
  const { retries } = open();
  const timeouts: number[] = [];
  const store = (timeoutMs: number) =>
    new Promise<never>((_, reject) => {
      timeouts.push(timeoutMs);
      setTimeout(() => reject(new TimeoutError()), timeoutMs);
    });
  const failed = expect(retries.run('store a message', BUDGET_MS, store)).rejects.toMatchObject({ code: 'service.unreachable' });
  await vi.advanceTimersByTimeAsync(BUDGET_MS + 1_000);
  await failed;

  expect(timeouts[0]).toBe((clusterPings.max + 1) * clusterPings.everyMs);
  expect(timeouts).toHaveLength(2);
});

it('an action that bounds its attempts gets what is left of its budget', async () => {
  const { retries } = open();
  const left: number[] = [];
  const done = retries.runWithin('begin to read', BUDGET_MS, async (leftMs) => {
    left.push(leftMs);
    if (left.length === 2) return 'done';
    throw new TimeoutError();
  });
  await vi.advanceTimersByTimeAsync(1_000);

  expect(await done).toBe('done');
  expect(left).toEqual([BUDGET_MS, BUDGET_MS - 50]);
  await retries.close();
  await expect(retries.runWithin('begin to read', BUDGET_MS, async () => 1)).rejects.toMatchObject({ code: 'bus.closed' });
});

it('an attempt ends when the connection is lost, and what waits for another connection ends with its budget', async () => {
  const { link, retries } = open();
  const failed = expect(retries.run('store a message', BUDGET_MS, () => never)).rejects.toMatchObject({
    code: 'service.unreachable',
    cause: { message: 'lost' },
  });
  link.isUp = false;
  retries.interrupt(new SwitchyardError('service.unreachable', 'lost'));
  await vi.advanceTimersByTimeAsync(BUDGET_MS);
  await failed;
});

it('an attempt that ended with the connection, and is never answered, leaves nothing at the signal of its caller', async () => {
  const { retries } = open();
  const until = new AbortController().signal;
  let calls = 0;
  const asking = retries.callApi(
    'ask',
    BUDGET_MS,
    () => {
      calls += 1;
      return calls === 1 ? never : Promise.resolve('answered');
    },
    until,
  );
  await vi.advanceTimersByTimeAsync(10);
  retries.interrupt(new SwitchyardError('service.unreachable', 'the connection was lost meanwhile'));
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await asking).toBe('answered');
  expect(getEventListeners(until, 'abort')).toHaveLength(0);
});

it('a closed one refuses, after it has waited for what is in flight', async () => {
  const { retries } = open();
  const answers: ((answer: string) => void)[] = [];
  const running = retries.run('ask', BUDGET_MS, () => new Promise<string>((resolve) => void answers.push(resolve)));
  let isClosed = false;
  const closing = retries.close().then(() => {
    isClosed = true;
  });
  await expect(retries.run('ask', BUDGET_MS, async () => 1)).rejects.toMatchObject({ code: 'bus.closed' });
  await expect(retries.callApi('ask', BUDGET_MS, async () => 1)).rejects.toMatchObject({ code: 'bus.closed' });
  expect(isClosed).toBe(false);
  answers[0]?.('late');

  expect(await running).toBe('late');
  await closing;
});
