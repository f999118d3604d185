import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { fingerprintOf } from '../../position-fingerprint.ts';
import type { NatsLink } from '../connection/link.ts';
import { Retries } from '../connection/retries.ts';
import { MESSAGE_ID_HEADER } from '../connection/wire-id.ts';
import { NatsCommandLog } from './command-log.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const STORED = { seq: 7, header: { get: (name: string) => (name === MESSAGE_ID_HEADER ? 'id' : '') }, string: () => 'body', time: new Date(1_000) };
const POSITION = { sequence: 7, fingerprint: fingerprintOf({ messageId: 'id', storedAtMs: 1_000 }) };

/** A reader at a position that the broker has from `foundAfterMs` on. @returns how often it began anew, and whether it reads */
async function readAt({ isCluster, foundAfterMs }: { isCluster: boolean; foundAfterMs: number }): Promise<{ restarts: number; reads: boolean }> {
  const seen = { restarts: 0, reads: false };
  const beganAtMs = performance.now();
  const { signal: session } = new AbortController();
  const open = async () => {
    seen.reads = true;
    return { name: 'r-1' };
  };
  const streams = { getMessage: async () => (performance.now() - beganAtMs >= foundAfterMs ? STORED : null) };
  const main = { subscribe: () => ({ isClosed: () => false, drain: async () => {}, unsubscribe: () => {} }), publish: () => {} };
  const retries = new Retries({ address: 'nats://there', isCluster, isUp: () => true, up: async () => session, redeclare: async () => {} });
  const link = {
    ...{ main, isCluster, inboxPrefix: '_INBOX', retries, up: async () => session },
    ...{ streams: { onRedeclare: () => () => {} }, manager: { streams }, consumers: { open }, changes: { consumers: { delete: async () => true } } },
  };
  const publish = async () => ({ sequence: 8, duplicate: false });
  const log = new NatsCommandLog({ link: link as unknown as NatsLink, publish, budgetMs: 8_000, log: silentLog });
  const onRestart = () => {
    seen.restarts += 1;
  };
  log.read(1, POSITION, async () => {}, { onRestart });
  await vi.advanceTimersByTimeAsync(7_000);
  const found = { ...seen };
  await log.stopReaders();
  return found;
}

it.each([
  { what: 'a position that a new leader of a cluster has not applied yet is waited for', isCluster: true, foundAfterMs: 3_000, restarts: 0 },
  { what: 'a position that a cluster never has is of a lost log', isCluster: true, foundAfterMs: Number.POSITIVE_INFINITY, restarts: 1 },
  { what: 'a position that a single server lacks is of a lost log, at once', isCluster: false, foundAfterMs: 100, restarts: 1 },
])('$what', async ({ isCluster, foundAfterMs, restarts }) => {
  expect(await readAt({ isCluster, foundAfterMs })).toEqual({ restarts, reads: true });
});

describe('a reader without a feed', () => {
  /** Behind the position, in the log. */
  const BEHIND = [8, 9];

  /** @param isCluster of which no consumer is placed before `place` is called @returns `reconnect`, which begins another session, and how many feeds were `opened` */
  function readUnplaced({ isCluster }: { isCluster: boolean }) {
    const received: number[] = [];
    let place = () => {};
    const placed = new Promise<void>((resolve) => {
      place = resolve;
    });
    let deliver = (_sequence: number) => {};
    let session = new AbortController();
    const opened: number[] = [];
    const commandAt = (seq: number) => ({ ...STORED, seq });
    const streams = {
      getMessage: async (_: string, { seq, next_by_subj: subject }: { seq: number; next_by_subj?: string }) => {
        if (subject === undefined) return commandAt(seq);
        const found = BEHIND.find((sequence) => sequence >= seq);
        return found === undefined ? null : commandAt(found);
      },
    };
    const main = {
      subscribe: (_: string, { callback }: { callback: (error: null, message: unknown) => void }) => {
        let deliveries = 0;
        deliver = (sequence) => {
          deliveries += 1;
          const reply = `$JS.ACK.CMD.r-1.1.${sequence}.${deliveries}.1000000000.0`;
          callback(null, { reply, headers: { code: 0, get: () => 'id' }, string: () => 'body' });
        };
        return { isClosed: () => false, drain: async () => {}, unsubscribe: () => {} };
      },
      publish: () => {},
    };
    const open = async () => {
      opened.push(performance.now());
      await placed;
      return { name: 'r-1' };
    };
    const up = async () => session.signal;
    const retries = new Retries({ address: 'nats://there', isCluster, isUp: () => true, up, redeclare: async () => {} });
    const reconnect = () => {
      const lost = new SwitchyardError('service.unreachable', 'lost');
      session.abort(lost);
      session = new AbortController();
      retries.interrupt(lost);
    };
    const link = {
      ...{ main, isCluster, inboxPrefix: '_INBOX', retries, up },
      ...{ streams: { onRedeclare: () => () => {} }, manager: { streams }, consumers: { open }, changes: { consumers: { delete: async () => true } } },
    };
    const publish = async () => ({ sequence: 8, duplicate: false });
    const log = new NatsCommandLog({ link: link as unknown as NatsLink, publish, budgetMs: 8_000, log: silentLog });
    log.read(1, POSITION, async (commands) => void received.push(...commands.map(({ sequence }) => sequence)));
    return { received, opened, place, reconnect, deliver: (sequence: number) => deliver(sequence), stop: () => log.stopReaders() };
  }

  it('DESIGN 3: gets the commands of a cluster from the log itself while no consumer is placed, and each of them once', async () => {
    const { received, place, deliver, stop } = readUnplaced({ isCluster: true });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(received).toEqual(BEHIND);

    place();
    await vi.advanceTimersByTimeAsync(1_000);
    for (const sequence of [...BEHIND, 10]) deliver(sequence);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(received).toEqual([...BEHIND, 10]);
    await stop();
  });

  it.each([true, false])(
    'begins anew at once when the connection is lost while its feed opens, and no feed of before is left (a cluster: %s)',
    async (isCluster) => {
      const { received, opened, place, reconnect, deliver, stop } = readUnplaced({ isCluster });
      await vi.advanceTimersByTimeAsync(1_000);
      expect(opened).toHaveLength(1);
      reconnect();
      await vi.advanceTimersByTimeAsync(100);
      expect(opened).toHaveLength(2);

      place();
      await vi.advanceTimersByTimeAsync(1_000);
      // Behind what was read one by one.
      for (const sequence of isCluster ? [10] : [...BEHIND, 10]) deliver(sequence);
      await vi.advanceTimersByTimeAsync(1_000);
      expect(received).toEqual([...BEHIND, 10]);
      expect(opened).toHaveLength(2);
      await stop();
    },
  );

  it('waits for its consumer at a single server, which has the log and places it', async () => {
    const { received, place, deliver, stop } = readUnplaced({ isCluster: false });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(received).toEqual([]);

    place();
    await vi.advanceTimersByTimeAsync(1_000);
    for (const sequence of BEHIND) deliver(sequence);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(received).toEqual(BEHIND);
    await stop();
  });

  it('ends at once when it is stopped', async () => {
    const { place, stop } = readUnplaced({ isCluster: true });
    await vi.advanceTimersByTimeAsync(1_000);
    const stopped = stop();
    place();
    await vi.advanceTimersByTimeAsync(1_000);
    await stopped;
  });
});
