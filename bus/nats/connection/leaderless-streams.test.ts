import { JetStreamApiError } from '@nats-io/jetstream';
import { NoRespondersError, RequestError, TimeoutError } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
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
/** nats-server 2.10.14 to 2.10.29, of a message that it has not stored yet. */
const inProcess = { stream: 'CMD', seq: 0, duplicate: true };

/**
 * @param answerTo a publish, by its subject and the milliseconds since the first
 * @returns `lose` and `find` the connection, and what was `sent`
 */
function open(answerTo: (subject: string, sinceMs: number) => Answer | Promise<Answer>, version = '2.9.10') {
  const beganAt = performance.now();
  const sent: string[] = [];
  const ask = async (subject: string, _bytes: Uint8Array, { timeoutMs }: { timeoutMs: number }) => {
    sent.push(subject);
    const answer = await answerTo(subject, performance.now() - beganAt);
    if (answer === 'no leader') throw new RequestError('no responders', { cause: new NoRespondersError(subject) });
    if (answer === 'never') return new Promise((_, reject) => void setTimeout(() => reject(new TimeoutError()), timeoutMs));
    if (answer instanceof Error) throw answer;
    return { json: () => answer };
  };
  const redeclare = vi.fn(() => new Promise<void>(() => {}));
  let isUp = true;
  const waiting: (() => void)[] = [];
  const up = (until: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      waiting.push(resolve);
      until.addEventListener('abort', () => reject(until.reason));
    });
  const retries = new Retries({ address: 'nats://there', isCluster: true, isUp: () => isUp, up, redeclare });
  const lose = () => {
    isUp = false;
    retries.interrupt(new SwitchyardError('service.unreachable', 'lost'));
  };
  const find = () => {
    isUp = true;
    for (const resolve of waiting) resolve();
  };
  const link = { isCluster: true, retries, requests: { ask }, main: { info: { version } } } as unknown as NatsLink;
  const publish = storedPublisher({ link, budgetMs: BUDGET_MS, onFull: () => {} });
  return { sent, publish, redeclare, lose, find };
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

  it('DESIGN 3: is sent one publish a second again while its leader is slow, which has them in process, and stores each of them once', async () => {
    const ids: string[] = [];
    const { publish } = open((subject, sinceMs) => {
      const isFirst = !ids.includes(subject);
      ids.push(subject);
      if (sinceMs >= 3_900) return { ...stored, duplicate: true };
      return isFirst ? new Promise((resolve) => void setTimeout(resolve, 3_900, stored)) : inProcess;
    }, '2.10.27');
    const done = Array.from({ length: 20 }, (_, index) => publish(`cmd.${index}`, 'a', ''));
    await vi.advanceTimersByTimeAsync(BUDGET_MS);

    // Each of them is new to its publisher.
    expect(await Promise.all(done)).toEqual(Array.from({ length: 20 }, () => ({ sequence: 7, duplicate: false })));
    expect(ids).toHaveLength(23);
  });

  it.each([
    { what: 'has already', answer: { ...stored, duplicate: true } },
    { what: 'refuses', answer: new JetStreamApiError({ code: 400, err_code: 10060, description: 'expected stream does not match' }) },
  ])('keeps what it is storing slowly, though its leader answers what it $what before that', async ({ answer }) => {
    const { sent, publish } = open(
      (subject) => (subject === 'cmd.known' ? answer : new Promise((resolve) => void setTimeout(resolve, 900, stored))),
      '2.10.27',
    );
    const slow = ['cmd.1', 'cmd.2', 'cmd.3'].map((subject) => publish(subject, 'a', ''));
    await vi.advanceTimersByTimeAsync(500);
    const known = publish('cmd.known', 'b', '').catch(() => {});
    await vi.advanceTimersByTimeAsync(NEXT_ATTEMPT_MS);
    await known;
    expect(sent).toHaveLength(4);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await Promise.all(slow)).toHaveLength(3);
    expect(sent).toHaveLength(4);
  });

  it('DESIGN 3: is not sent what is stored once more, nor held up by it, when the connection was lost while it waited for the leader', async () => {
    const isLeaderless = (sinceMs: number) => sinceMs < 2_000 || (sinceMs > 7_000 && sinceMs < 10_000);
    const { sent, publish, lose, find } = open((_, sinceMs) => (isLeaderless(sinceMs) ? 'no leader' : stored));
    const asking = publish('cmd.1', 'a', '');
    await vi.advanceTimersByTimeAsync(500);
    const both = [asking, publish('cmd.2', 'b', '')];
    await vi.advanceTimersByTimeAsync(500);
    lose();
    find();
    await vi.advanceTimersByTimeAsync(1_000 + NEXT_ATTEMPT_MS);
    expect(await Promise.all(both)).toHaveLength(2);
    // Nothing waits for the end of a budget.
    expect(vi.getTimerCount()).toBeLessThanOrEqual(1);

    await vi.advanceTimersByTimeAsync(BUDGET_MS);
    expect(sent.filter((subject) => subject === 'cmd.2')).toHaveLength(1);
    const next = publish('cmd.3', 'c', '');
    await vi.advanceTimersByTimeAsync(NEXT_ATTEMPT_MS);
    expect(await next).toMatchObject({ sequence: 7 });
  });

  it('is sent nothing without a connection when the publish that asks is given up', async () => {
    const { sent, publish, lose, find } = open(() => (sent.includes('cmd.2') ? stored : 'no leader'));
    const refused = expect(publish('cmd.1', 'a', '')).rejects.toMatchObject({ code: 'service.unreachable' });
    await vi.advanceTimersByTimeAsync(1_000);
    const next = publish('cmd.2', 'b', '');
    await vi.advanceTimersByTimeAsync(6_000);
    lose();
    await vi.advanceTimersByTimeAsync(1_500);
    await refused;
    expect(sent).not.toContain('cmd.2');
    find();
    await vi.advanceTimersByTimeAsync(NEXT_ATTEMPT_MS);

    expect(await next).toMatchObject({ sequence: 7 });
    expect(sent.filter((subject) => subject === 'cmd.2')).toHaveLength(1);
  });

  it.each([
    { what: 'finds no leader', late: 'no leader' },
    { what: 'is never answered', late: 'never' },
  ] as const)('is neither held up by nor sent again a publish that is stored, though an attempt before that $what', async ({ late }) => {
    const { sent, publish, lose, find } = open((subject, sinceMs) => {
      if (subject === 'cmd.1' && sinceMs < 500) return late === 'never' ? late : new Promise((resolve) => void setTimeout(resolve, 3_000, late));
      return subject === 'cmd.1' ? { ...stored, duplicate: true } : stored;
    }, '2.10.27');
    const first = publish('cmd.1', 'a', '');
    await vi.advanceTimersByTimeAsync(500);
    lose();
    find();
    await vi.advanceTimersByTimeAsync(NEXT_ATTEMPT_MS);
    expect(await first).toMatchObject({ sequence: 7 });
    await vi.advanceTimersByTimeAsync(4_000);

    const next = publish('cmd.2', 'b', '');
    await vi.advanceTimersByTimeAsync(NEXT_ATTEMPT_MS);
    expect(await next).toMatchObject({ sequence: 7 });
    expect(sent).toEqual(['cmd.1', 'cmd.1', 'cmd.2']);
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
    const full = new JetStreamApiError({ code: 503, err_code: 10077, description: 'maximum bytes exceeded' });
    const answers: Record<string, Answer> = { 'cmd.1': full, 'cmd.2': 'never', 'cmd.3': stored };
    const { publish, sent } = open((subject, sinceMs) => (sinceMs < 1_000 ? 'no leader' : (answers[subject] ?? 'never')));
    const refused = expect(publish('cmd.1', 'a', '')).rejects.toMatchObject({ code: 'bus.full' });
    const lost = expect(publish('cmd.2', 'b', '')).rejects.toMatchObject({ code: 'service.unreachable' });
    const other = publish('cmd.3', 'c', '');
    await vi.advanceTimersByTimeAsync(1_000 + NEXT_ATTEMPT_MS);
    await refused;

    expect(await other).toMatchObject({ sequence: 7 });
    await vi.advanceTimersByTimeAsync(BUDGET_MS);
    await lost;
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
