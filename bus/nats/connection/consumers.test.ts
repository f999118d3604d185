import { JetStreamApiError } from '@nats-io/jetstream';
import { TimeoutError } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Consumers, type ConsumersOptions } from './consumers.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const BUDGET_MS = 8_000;
const CONFIG = { prefix: 'r-', filter_subject: 'cmd.7' };
const never = new Promise<never>(() => {});

/** @param answers whether the request so far is answered: that of the leader, and the creation of a consumer */
function open({ isCluster = true, leaderFrom = 1, createdFrom = 1 } = {}) {
  const sent = { asked: [] as string[], created: [] as string[] };
  const refused = { error: { code: 400, err_code: 10056, description: 'stream name in subject does not match request' } };
  const requests = {
    ask: (subject: string) => {
      sent.asked.push(subject);
      return sent.asked.length < leaderFrom ? never : Promise.resolve({ json: () => refused });
    },
  };
  const consumers = {
    add: (_: string, { name }: { name: string }) => {
      sent.created.push(name);
      return sent.created.length < createdFrom ? never : Promise.resolve({ name });
    },
  };
  const requested = new Set<string>();
  const options = { isCluster, requests, manager: { consumers } } as unknown as ConsumersOptions;
  const opened = new Consumers(options);
  return { sent, requests, requested, opened, begin: () => opened.open('CMD', CONFIG, BUDGET_MS, requested) };
}

describe('a consumer in a cluster', () => {
  it('is requested of no leader that does not answer: it would create it when it goes on, and the others would not have it', async () => {
    const { sent, begin } = open({ leaderFrom: 4 });
    const created = begin();
    await vi.advanceTimersByTimeAsync(800);
    expect(sent.created).toEqual([]);
    await vi.advanceTimersByTimeAsync(400);

    expect(sent.created).toEqual([(await created).name]);
    expect(sent.asked.every((subject) => /^\$JS\.API\.CONSUMER\.CREATE\.CMD\.r-\w+\.cmd\.7$/.test(subject))).toBe(true);
    expect(sent.asked).toHaveLength(4);
  });

  it('that is placed at a lost server is requested under other names, and its reader knows the others', async () => {
    const { sent, requested, begin } = open({ createdFrom: 3 });
    const created = begin();
    await vi.advanceTimersByTimeAsync(800);
    const { name } = await created;

    expect(sent.created).toHaveLength(3);
    expect(new Set(sent.created).size).toBe(3);
    expect(name).toBe(sent.created[2]);
    expect([...requested]).toEqual(sent.created.slice(0, 2));
  });

  it('is requested four times in an attempt, however long it is not answered', async () => {
    const { sent, requested, begin } = open({ createdFrom: 100 });
    const failed = expect(begin()).rejects.toBeInstanceOf(TimeoutError);
    await vi.advanceTimersByTimeAsync(BUDGET_MS);
    await failed;

    expect(sent.created).toHaveLength(4);
    expect([...requested]).toEqual(sent.created);
  });

  it('of several readers keeps its name', async () => {
    const { sent, opened } = open({ createdFrom: 2 });
    const declared = opened.declare('WORK', { name: 'tool', filter_subject: 'work.tool' }, BUDGET_MS);
    await vi.advanceTimersByTimeAsync(400);
    await declared;

    expect(sent.created).toEqual(['tool', 'tool']);
    expect(sent.asked).toEqual(['$JS.API.CONSUMER.CREATE.WORK.tool.work.tool']);
  });

  it('is refused with what the leader refuses', async () => {
    const { begin, requests } = open();
    requests.ask = () => Promise.resolve({ json: () => ({ error: { code: 503, err_code: 10008, description: 'no leader' } }) as never });

    await expect(begin()).rejects.toBeInstanceOf(JetStreamApiError);
  });

  it('asks the leader once for all that begin together', async () => {
    const { sent, begin } = open();
    await Promise.all(Array.from({ length: 8 }, begin));

    expect(sent.asked).toHaveLength(1);
    expect(sent.created).toHaveLength(8);
  });
});

it('a consumer at a single server is requested at once, and once', async () => {
  const { sent, requested, begin } = open({ isCluster: false });
  await begin();

  expect(sent.asked).toEqual([]);
  expect(requested.size).toBe(0);
  expect(sent.created).toHaveLength(1);
});
