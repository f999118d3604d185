import { describe, expect, it } from 'vitest';
import { LONG_MS, type UnderTest, unique } from './store-under-test.ts';

export function hostCases(underTest: UnderTest): void {
  const beat = (hostId: string, fields: { logCreated?: string; isStopping?: boolean; expiresAfterMs?: number } = {}) => {
    const { logCreated, isStopping = false, expiresAfterMs = LONG_MS } = fields;
    const bus = logCreated === undefined ? null : { sinceAgoMs: 5_000, reachedAgoMs: 1_000, logCreated };
    return underTest().store.hosts.beat({ hostId, machineVersion: 7, bus, isStopping, expiresAfterMs });
  };
  const seen = async (by: string, host: string) => (await beat(by, { isStopping: true })).find(({ id }) => id === host);

  describe('heartbeats', () => {
    it('return the other live hosts, with their version and when their broker replied', async () => {
      const [one, other] = [unique('host'), unique('host')];
      await beat(one, { logCreated: 'log' });

      const hosts = await beat(other);
      const found = hosts.find(({ id }) => id === one);
      expect(found).toEqual({ id: one, machineVersion: 7, bus: { sinceAgoMs: expect.any(Number), reachedAgoMs: expect.any(Number), logCreated: 'log' } });
      expect(found?.bus?.sinceAgoMs).toBeGreaterThanOrEqual(5_000);
      expect(found?.bus?.reachedAgoMs).toBeGreaterThanOrEqual(1_000);
      expect(hosts.map(({ id }) => id)).not.toContain(other);
      expect((await beat(one)).find(({ id }) => id === other)).toMatchObject({ bus: null });
    });

    it('return no dead hosts, and none that has deregistered', async () => {
      const [one, other] = [unique('host'), unique('host')];
      await beat(one);

      expect(await beat(other, { expiresAfterMs: -LONG_MS })).toEqual([]);
      await underTest().store.hosts.deregister(one);
      expect((await beat(other)).map(({ id }) => id)).not.toContain(one);
    });

    it('say which of two stopping hosts began to stop earlier, until it no longer stops', async () => {
      const [first, second] = [unique('host-a'), unique('host-b')];
      await beat(first, { isStopping: true });

      expect(await seen(second, first)).toMatchObject({ stopping: { isEarlier: true } });
      expect(await seen(first, second)).toMatchObject({ stopping: { isEarlier: false } });
      await beat(first);
      expect(await seen(second, first)).not.toHaveProperty('stopping');
    });

    it('list the hosts whose broker has another log, and has replied lately', async () => {
      const [one, other] = [unique('host'), unique('host')];
      const log = unique('log');
      await beat(one, { logCreated: log });
      await beat(other, { logCreated: 'ours' });

      const found = await underTest().store.hosts.ofOtherLogs({ hostId: other, logCreated: 'ours', expiresAfterMs: LONG_MS });
      expect(found.filter(({ id }) => id === one)).toEqual([{ id: one, logCreated: log, answeredAtMs: expect.any(Number) }]);
      expect(found.map(({ id }) => id)).not.toContain(other);
      expect(await underTest().store.hosts.ofOtherLogs({ hostId: other, logCreated: 'ours', expiresAfterMs: 500 })).toEqual([]);
    });
  });
}
