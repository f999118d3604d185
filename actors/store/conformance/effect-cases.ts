import { describe, expect, it } from 'vitest';
import { RETRY_SUFFIX } from '../../kinds/delivery/rounds.ts';
import { AT_MS, arm, callOf, close, commit, deliveryOf, open, planOf, roundOf } from './plans.ts';
import { acquire, nextPartition, type UnderTest, unique } from './store-under-test.ts';

export function effectCases(underTest: UnderTest): void {
  const openIn = async (partition: number) => (await underTest().store.effects.open([partition])).map(({ effect }) => effect.id);

  describe('effects', () => {
    it('are open until a commit closes them, oldest first, and each in its partition', async () => {
      const [claim, other] = [await acquire(underTest(), nextPartition()), await acquire(underTest(), nextPartition())];
      const [younger, older, closed, elsewhere] = [unique('eff'), unique('eff'), unique('eff'), unique('eff')];
      const before = await openIn(claim.partition);
      const plan = planOf(claim, other);
      open(plan, callOf(younger, claim, AT_MS + 1));
      open(plan, callOf(older, claim));
      open(plan, callOf(closed, claim));
      close(plan, claim, closed, 'done');
      open(plan, callOf(elsewhere, other));
      await commit(underTest(), plan);
      expect((await openIn(claim.partition)).filter((id) => !before.includes(id))).toEqual([older, younger]);

      const closing = planOf(claim, other);
      close(closing, claim, older, 'done');
      // Of another partition: nothing changes.
      close(closing, claim, elsewhere, 'done');
      await commit(underTest(), closing);
      expect(await openIn(claim.partition)).toContain(younger);
      expect(await openIn(claim.partition)).not.toContain(older);
      expect(await openIn(other.partition)).toContain(elsewhere);
    });

    it('are returned whole, unpublished until a commit says otherwise, and claimed when a worker has begun them', async () => {
      const [id, claim] = [unique('eff'), await acquire(underTest(), nextPartition())];
      const plan = planOf(claim);
      open(plan, callOf(id, claim));
      await commit(underTest(), plan);
      const found = async () => (await underTest().store.effects.open([claim.partition])).find(({ effect }) => effect.id === id);
      expect(await found()).toEqual({ effect: callOf(id, claim), isUnpublished: true, hasOutboxRow: false, isClaimed: false });

      const published = planOf(claim);
      published.outboxDone.set(id, claim.partition);
      await commit(underTest(), published);
      await underTest().others.claim(id);
      expect(await found()).toEqual({ effect: callOf(id, claim), isUnpublished: false, hasOutboxRow: false, isClaimed: true });
    });

    it('that were superseded are distinguished from those that are done or open, and stay so', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const [superseded, done, still] = [unique('eff'), unique('eff'), unique('eff')];
      const plan = planOf(claim);
      for (const id of [superseded, done, still]) open(plan, callOf(id, claim));
      await commit(underTest(), plan);
      const closing = planOf(claim);
      close(closing, claim, superseded, 'superseded');
      close(closing, claim, done, 'done');
      await commit(underTest(), closing);
      const late = planOf(claim);
      close(late, claim, superseded, 'done');
      await commit(underTest(), late);

      expect(await underTest().store.effects.superseded([superseded, done, still, unique('eff')])).toEqual(new Set([superseded]));
    });

    it('that no worker has claimed are withdrawn, and can not be claimed any more; a repeat finds the same', async () => {
      const { store, others } = underTest();
      const [claimed, other] = [unique('eff'), unique('eff')];
      expect(await others.claim(claimed)).toBe(true);

      expect(await store.effects.withdrawUnclaimed([claimed, other, other])).toEqual(new Set([claimed]));
      expect(await others.claim(other)).toBe(false);
      expect(await store.effects.withdrawUnclaimed([claimed, other])).toEqual(new Set([claimed]));
      expect(await store.effects.withdrawUnclaimed([])).toEqual(new Set());
    });

    it('are either claimed or withdrawn, however the two meet', async () => {
      const { store, others } = underTest();
      const ids = Array.from({ length: 50 }, () => unique('eff'));
      const [begun, ...claims] = await Promise.all([store.effects.withdrawUnclaimed(ids), ...ids.map((id) => others.claim(id))]);

      expect(begun).toEqual(new Set(ids.filter((_, index) => claims[index])));
    });

    it('that are withdrawn do not count as begun', async () => {
      const [id, claim] = [unique('eff'), await acquire(underTest(), nextPartition())];
      const plan = planOf(claim);
      open(plan, callOf(id, claim));
      await commit(underTest(), plan);
      await underTest().store.effects.withdrawUnclaimed([id]);

      expect((await underTest().store.effects.open([claim.partition])).find(({ effect }) => effect.id === id)?.isClaimed).toBe(false);
    });
  });

  describe('deliveries', () => {
    it('are settled once, and the dead letter of one is stored only while it is open', async () => {
      const [id, claim] = [unique('dlv'), await acquire(underTest(), nextPartition())];
      const plan = planOf(claim);
      plan.deliveries.set(id, deliveryOf(id, claim));
      await commit(underTest(), plan);
      for (const state of ['dead', 'delivered'] as const) {
        const settling = planOf(claim);
        settling.deliveryStates.set(id, { partition: claim.partition, id, state });
        settling.deadLetters.push({ partition: claim.partition, id, source: 'delivery', reason: 'r', body: '' });
        await commit(underTest(), settling);
      }

      expect(await underTest().others.deliveryState(id)).toBe('dead');
      expect(await underTest().others.deadLetters(id)).toEqual(['delivery']);
    });

    it('with an open round or a retry to come are pending at their receivers, each named once', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const [inRound, waiting, settled] = [unique('dlv'), unique('dlv'), unique('dlv')];
      const urlOf = (id: string) => `https://${id.replace('_', '-')}.example.com/`;
      const plan = planOf(claim);
      for (const id of [inRound, waiting, settled]) plan.deliveries.set(id, deliveryOf(id, claim, urlOf(id)));
      open(plan, roundOf(`${inRound}-1`, inRound, claim));
      open(plan, roundOf(`${inRound}-2`, inRound, claim));
      arm(plan, claim, `${waiting}-1${RETRY_SUFFIX}`, AT_MS, JSON.stringify({ deliveryId: waiting }));
      await commit(underTest(), plan);

      const urls = await underTest().store.effects.pendingReceivers(1_000);
      expect(urls.filter((url) => [inRound, waiting, settled].map(urlOf).includes(url)).sort()).toEqual([inRound, waiting].map(urlOf).sort());
      expect(await underTest().store.effects.pendingReceivers(1)).toHaveLength(1);
    });

    it('of events with an open round or a retry to come are pending at their receivers, each named once', async () => {
      const claim = await acquire(underTest(), nextPartition());
      const [inRound, waiting, settled] = [unique('evw'), unique('evw'), unique('evw')];
      const urlOf = (id: string) => `https://${id.replace('_', '-')}.example.com/`;
      const roundTo = (id: string, state: 'open' | 'done') => {
        const round = roundOf(id, 'ses_1', claim);
        return { ...round, state, kind: 'event-delivery', inputs: { ...round.inputs, url: urlOf(id) } };
      };
      const plan = planOf(claim);
      plan.openEffect(roundTo(inRound, 'open'));
      for (const id of [waiting, settled]) plan.openEffect(roundTo(id, 'done'));
      arm(plan, claim, `${waiting}${RETRY_SUFFIX}`, AT_MS, JSON.stringify({ type: 'event-webhook.due', roundId: waiting }));
      await commit(underTest(), plan);

      const urls = await underTest().store.effects.pendingReceivers(1_000);
      expect(urls.filter((url) => [inRound, waiting, settled].map(urlOf).includes(url)).sort()).toEqual([inRound, waiting].map(urlOf).sort());
    });
  });
}
