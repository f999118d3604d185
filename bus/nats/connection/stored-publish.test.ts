import { headers, type MsgHdrs } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { NatsLink } from './link.ts';
import { Retries } from './retries.ts';
import { storedPublisher } from './stored-publish.ts';
import { fromWireId, MESSAGE_ID_HEADER } from './wire-id.ts';

const BUDGET_MS = 60_000;

/** @returns what was sent, by subject, and `answer`, which acknowledges the oldest of it that waits */
function open({ isCluster }: { isCluster: boolean }) {
  const sent: string[] = [];
  const waiting: ((sequence: number) => void)[] = [];
  const ask = (subject: string) => {
    sent.push(subject);
    return new Promise((resolve) => {
      waiting.push((sequence) => resolve({ json: () => ({ stream: 'CMD', seq: sequence }) }));
    });
  };
  const retries = new Retries({ address: 'nats://there', isCluster, isUp: () => true, up: () => new Promise(() => {}), redeclare: async () => {} });
  const link = { isCluster, retries, requests: { ask }, main: { info: { version: '2.10.27' } } } as unknown as NatsLink;
  const publish = storedPublisher({ link, budgetMs: BUDGET_MS, onFull: () => {} });
  return { sent, publish, answer: (sequence: number) => waiting.shift()?.(sequence) };
}

it('a message that a cluster is storing is not sent a second time, and both callers get its place', async () => {
  const { sent, publish, answer } = open({ isCluster: true });
  const [first, second] = [publish('cmd.1', 'a', 'body'), publish('cmd.1', 'a', 'body')];
  const [otherSubject, otherId] = [publish('cmd.2', 'a', 'body'), publish('cmd.1', 'b', 'body')];
  expect(sent).toEqual(['cmd.1', 'cmd.2', 'cmd.1']);
  for (const sequence of [7, 8, 9]) answer(sequence);

  expect(await Promise.all([first, second])).toEqual([
    { sequence: 7, duplicate: false },
    { sequence: 7, duplicate: true },
  ]);
  await Promise.all([otherSubject, otherId]);
  const again = publish('cmd.1', 'a', 'body');
  expect(sent).toHaveLength(4);
  answer(7);
  await again;
});

it('a single server is sent each publish', async () => {
  const { sent, publish, answer } = open({ isCluster: false });
  const both = [publish('cmd.1', 'a', 'body'), publish('cmd.1', 'a', 'body')];
  expect(sent).toHaveLength(2);
  for (const sequence of [7, 7]) answer(sequence);
  await Promise.all(both);
});

describe('a message that its leader has in process, and has not stored', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** nats-server 2.10.14 to 2.10.29. */
  const inProcess = { stream: 'WORK', seq: 0, duplicate: true };
  /** From 2.11 on. */
  const conflict = { error: { code: 409, err_code: 10158, description: 'duplicate message id is in process' } };

  /**
   * @param answerTo the ack of a publish, by its id and the milliseconds since the first
   * @param lateMs how long after the first answer it is read
   */
  function publishTo(answerTo: (wireId: string, sinceMs: number) => object, lateMs = 0) {
    const ids: string[] = [];
    const marks: string[] = [];
    const beganAt = performance.now();
    let asked = 0;
    const ask = async (_subject: string, _bytes: Uint8Array, { headers: sent }: { headers: MsgHdrs }) => {
      const id = sent.get(MESSAGE_ID_HEADER);
      if (ids.at(-1) !== id) marks.push(sent.get('mark'));
      if (ids.at(-1) !== id) ids.push(id);
      const answer = answerTo(id, performance.now() - beganAt);
      if (lateMs > 0 && asked === 0) await new Promise((resolve) => setTimeout(resolve, lateMs));
      asked += 1;
      return { json: () => answer };
    };
    const retries = new Retries({ address: 'nats://there', isCluster: true, isUp: () => true, up: () => new Promise(() => {}), redeclare: async () => {} });
    const link = { isCluster: true, retries, requests: { ask }, main: { info: { version: '2.10.27' } } } as unknown as NatsLink;
    const publish = storedPublisher({ link, budgetMs: 8_000, onFull: () => {} });
    const marked = (mark: string) => {
      const one = headers();
      one.set('mark', mark);
      return one;
    };
    return { ids, marks, stored: publish('work.tool', 'a b', 'body', marked('first'), () => marked('again')) };
  }

  it.each([inProcess, conflict])(
    'DESIGN 3: a message that its leader has in process is not taken for stored: it is sent again until it is (%j)',
    async (answer) => {
      const { ids, stored } = publishTo((_, sinceMs) => (sinceMs < 1_000 ? answer : { stream: 'WORK', seq: 7, duplicate: true }));
      await vi.advanceTimersByTimeAsync(2_000);

      expect(await stored).toEqual({ sequence: 7, duplicate: true });
      expect(ids).toEqual(['a%20b']);
    },
  );

  it.each([inProcess, conflict])(
    'DESIGN 3: a message that its leader has lost is stored under another id, and marked as one that may be there twice (%j)',
    async (answer) => {
      const { ids, marks, stored } = publishTo((id) => (id === 'a%20b' ? answer : { stream: 'WORK', seq: 8 }));
      await vi.advanceTimersByTimeAsync(8_000);

      expect(await stored).toEqual({ sequence: 8, duplicate: true });
      expect(ids).toHaveLength(2);
      expect(ids.map(fromWireId)).toEqual(['a b', 'a b']);
      expect(marks).toEqual(['first', 'again']);
    },
  );

  it('is not taken for lost by a process that was paused and reads the answer late', async () => {
    const { ids, stored } = publishTo((_, sinceMs) => (sinceMs < 1_000 ? inProcess : { stream: 'WORK', seq: 7, duplicate: true }), 5_000);
    await vi.advanceTimersByTimeAsync(7_000);

    expect(await stored).toEqual({ sequence: 7, duplicate: true });
    expect(ids).toEqual(['a%20b']);
  });

  it('is refused when no id of it is stored within the budget', async () => {
    const { ids, stored } = publishTo(() => inProcess);
    const refused = expect(stored).rejects.toMatchObject({ code: 'service.unreachable' });
    await vi.advanceTimersByTimeAsync(9_000);
    await refused;

    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThan(1);
  });
});
