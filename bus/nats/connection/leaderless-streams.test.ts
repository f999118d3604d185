import { JetStreamApiError } from '@nats-io/jetstream';
import { NoRespondersError, RequestError, TimeoutError } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { NatsLink } from './link.ts';
import { Retries } from './retries.ts';
import { storedPublisher } from './stored-publish.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(async () => {
  // Of what is not answered any more.
  await vi.advanceTimersByTimeAsync(BUDGET_MS);
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const BUDGET_MS = 8_000;
/** Longer than the longest pause between two attempts. */
const NEXT_ATTEMPT_MS = 300;
const stored = { stream: 'CMD', seq: 7 };
type Answer = object | 'no leader' | 'never';

/** @param answerTo a publish, by its subject and the milliseconds since the first */
function open(answerTo: (subject: string, sinceMs: number) => Answer, version = '2.9.10') {
  const beganAt = performance.now();
  const sent: string[] = [];
  const ask = async (subject: string, _bytes: Uint8Array, { timeoutMs }: { timeoutMs: number }) => {
    sent.push(subject);
    const answer = answerTo(subject, performance.now() - beganAt);
    if (answer === 'no leader') throw new RequestError('no responders', { cause: new NoRespondersError(subject) });
    if (answer === 'never') return new Promise((_, reject) => void setTimeout(() => reject(new TimeoutError()), timeoutMs));
    if (answer instanceof Error) throw answer;
    return { json: () => answer };
  };
  const redeclare = vi.fn(() => new Promise<void>(() => {}));
  const retries = new Retries({ address: 'nats://there', isCluster: true, isUp: () => true, up: () => new Promise(() => {}), redeclare });
  const link = { isCluster: true, retries, requests: { ask }, main: { info: { version } } } as unknown as NatsLink;
  const publish = storedPublisher({ link, budgetMs: BUDGET_MS, onFull: () => {} });
  return { sent, publish, redeclare };
}

describe('a stream of a cluster without a leader', () => {
  it('DESIGN 3: is asked by one publish, and gets the others as soon as that is stored', async () => {
    const { sent, publish } = open((_, sinceMs) => (sinceMs < 5_000 ? 'no leader' : stored));
    const first = publish('cmd.1', 'a', '');
    await vi.advanceTimersByTimeAsync(1_000);
    const others = ['b', 'c', 'd'].map((id) => publish('cmd.2', id, ''));
    await vi.advanceTimersByTimeAsync(3_900);
    expect(sent.filter((subject) => subject === 'cmd.2')).toEqual([]);
    await vi.advanceTimersByTimeAsync(NEXT_ATTEMPT_MS);

    expect(await Promise.all([first, ...others])).toEqual(Array.from({ length: 4 }, () => ({ sequence: 7, duplicate: false })));
    expect(sent.filter((subject) => subject === 'cmd.2')).toHaveLength(3);
  });

  it('DESIGN 3: gets again what was sent to a leader that is lost without a word, as soon as the others have given that up', async () => {
    const { sent, publish } = open((_, sinceMs) => (sinceMs < 3_500 ? 'never' : sinceMs < 5_000 ? 'no leader' : stored));
    await vi.advanceTimersByTimeAsync(3_000);
    const lost = publish('cmd.1', 'a', '');
    await vi.advanceTimersByTimeAsync(600);
    const asking = publish('cmd.2', 'b', '');
    await vi.advanceTimersByTimeAsync(1_400 + NEXT_ATTEMPT_MS);

    expect(await Promise.all([lost, asking])).toHaveLength(2);
    expect(sent.filter((subject) => subject === 'cmd.1')).toHaveLength(2);
  });

  it('DESIGN 3: gets again what was sent to a leader that is lost without a word, also when nothing else is published', async () => {
    const { publish } = open((_, sinceMs) => (sinceMs < 4_500 ? 'never' : sinceMs < 5_000 ? 'no leader' : stored), '2.10.27');
    await vi.advanceTimersByTimeAsync(3_000);
    const lost = ['a', 'b', 'c', 'd'].map((id) => publish('cmd.1', id, ''));
    let isStored = false;
    void Promise.all(lost).then(() => {
      isStored = true;
    });
    // Their attempts end 4 s after they were sent.
    await vi.advanceTimersByTimeAsync(3_500);
    expect(isStored).toBe(true);
  });

  it('DESIGN 3: is sent one publish a second again while it answers none, and none of it by a server that would log it twice', async () => {
    const sentTo = async (version: string) => {
      const { sent, publish } = open((_, sinceMs) => (sinceMs < 3_900 ? 'never' : stored), version);
      const done = Array.from({ length: 20 }, (_, index) => publish(`cmd.${index}`, 'a', ''));
      await vi.advanceTimersByTimeAsync(3_500);
      const { length } = sent;
      await vi.advanceTimersByTimeAsync(BUDGET_MS);
      await Promise.all(done);
      return length;
    };
    expect(await sentTo('2.9.10')).toBe(20);
    expect(await sentTo('2.10.27')).toBe(23);
  });

  it('is asked by the next publish when the one that asked is given up', async () => {
    const { publish } = open((_, sinceMs) => (sinceMs < BUDGET_MS + 2_000 ? 'no leader' : stored));
    const refused = expect(publish('cmd.1', 'a', '')).rejects.toMatchObject({ code: 'service.unreachable' });
    await vi.advanceTimersByTimeAsync(5_000);
    const next = [publish('cmd.2', 'b', ''), publish('cmd.3', 'c', '')];
    await vi.advanceTimersByTimeAsync(BUDGET_MS - 2_000);
    await refused;

    expect(await Promise.all(next)).toHaveLength(2);
  });

  it('refuses what waits for longer than its budget', async () => {
    const { publish } = open(() => 'no leader');
    const refused = ['a', 'b'].map((id) => expect(publish('cmd.1', id, '')).rejects.toMatchObject({ code: 'service.unreachable' }));
    await vi.advanceTimersByTimeAsync(2 * BUDGET_MS);
    await Promise.all(refused);
  });

  it('has a leader again when that refuses', async () => {
    const full = new JetStreamApiError({ code: 400, err_code: 10077, description: 'maximum bytes exceeded' });
    const { publish, sent } = open((subject, sinceMs) => (sinceMs < 1_000 ? 'no leader' : subject === 'cmd.1' ? full : stored));
    const refused = expect(publish('cmd.1', 'a', '')).rejects.toMatchObject({ code: 'bus.full' });
    const other = publish('cmd.2', 'b', '');
    await vi.advanceTimersByTimeAsync(1_000 + NEXT_ATTEMPT_MS);
    await refused;

    expect(await other).toMatchObject({ sequence: 7 });
    expect(sent.length).toBeGreaterThan(2);
  });

  it('holds up no publish to another one', async () => {
    const { publish } = open((subject) => (subject.startsWith('cmd') ? 'no leader' : stored));
    const refused = expect(publish('cmd.1', 'a', '')).rejects.toMatchObject({ code: 'service.unreachable' });

    expect(await publish('work.tool', 'b', '')).toMatchObject({ sequence: 7 });
    await vi.advanceTimersByTimeAsync(2 * BUDGET_MS);
    await refused;
  });

  it('may be missing: the streams are declared meanwhile', async () => {
    const { publish, redeclare } = open((_, sinceMs) => (sinceMs < 1_000 ? 'no leader' : stored));
    const done = publish('cmd.1', 'a', '');
    await vi.advanceTimersByTimeAsync(2_000);
    await done;

    expect(redeclare).toHaveBeenCalled();
  });
});
