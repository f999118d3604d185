import { describe, expect, it } from 'vitest';
import type { CommandOf } from '#bus/messages/session.ts';
import { calledTools, create, start } from './commands.ts';
import { eventually, type House } from './house.ts';
import { isSettled, nextDelivery, report, runOf, VERDICT } from './run-helpers.ts';

/** What becomes of callbacks: one row each, rounds that are made again, and an end that is told once. */
export function callbackCases(open: () => Promise<House>): void {
  describe('callbacks of runs', () => {
    it('DESIGN 5: the command that reports its callback settled deletes the ephemeral session, and the run stays', async () => {
      const house = await open();
      await house.host();
      const [next, delivery] = [house.nextCall(), nextDelivery(house)];
      await house.startRun({ id: 'run_1' });
      await house.send(calledTools('ses_run', (await next).callId, VERDICT));
      const { effectId } = await delivery;
      expect(await house.count('sessions', 'deleted_at is null')).toBe(1);
      await house.send(report(effectId, 'delivered', 1));
      await eventually(async () => (await house.count('sessions', 'deleted_at is not null')) === 1);

      expect(await house.rows('select state from deliveries')).toEqual([{ state: 'delivered' }]);
      expect(await house.log('ses_run')).toEqual([]);
      expect(await house.count('steps')).toBe(0);
      expect(await house.count('timers')).toBe(0);
      expect(await runOf(house)).toMatchObject({ state: 'succeeded' });
    });

    it('DESIGN 5: a callback is one row; after a failure its back-off is a timer, and it becomes a dead letter at the end', async () => {
      const house = await open();
      await house.host();
      const [next, first] = [house.nextCall(), nextDelivery(house)];
      await house.startRun({ id: 'run_1' });
      await house.send(calledTools('ses_run', (await next).callId, VERDICT));
      const before = await first;
      const second = nextDelivery(house);
      await house.send(report(before.effectId, 'failed', 1));
      const again = await second;
      expect(again.effectId).not.toBe(before.effectId);
      expect(again.deliveryId).toBe(before.deliveryId);
      expect(await house.count('deliveries')).toBe(1);
      await house.send(report(again.effectId, 'exhausted', 5));
      await eventually(async () => (await house.count('dead_letters')) === 1);

      expect(await house.rows('select id, source, reason from dead_letters')).toEqual([
        { id: 'run_1-callback', source: 'delivery', reason: 'the receiver answered 503' },
      ]);
      expect(await house.rows('select state from deliveries')).toEqual([{ state: 'dead' }]);
      expect(await house.count('sessions', 'deleted_at is not null')).toBe(1);
    });

    it('DESIGN 6 rule 5: a delivery whose item was lost with its stream is published again by its timer', async () => {
      const house = await open();
      await house.host();
      const [next, first] = [house.nextCall(), nextDelivery(house)];
      await house.startRun({ id: 'run_1' });
      await house.send(calledTools('ses_run', (await next).callId, VERDICT));
      const lost = await first;
      const [timer] = await house.rows<{ p: number; command: CommandOf<'effect.overdue'> }>('select p, command from timers');
      expect(timer?.command).toMatchObject({ type: 'effect.overdue', callId: lost.effectId, kind: 'delivery' });
      const second = nextDelivery(house);
      // As the timer would bring it two and a half minutes later.
      await house.send(timer?.command as CommandOf<'effect.overdue'>);
      const again = await second;
      expect(again).toMatchObject({ deliveryId: lost.deliveryId });
      expect(await house.rows('select state from effects where id = $1', [lost.effectId])).toEqual([{ state: 'superseded' }]);
    });

    it('calls back once, though the start of a run is replayed after its end', async () => {
      const house = await open();
      await house.host();
      await house.startRun({ id: 'run_1', sessionId: 'ses_run', ephemeral: false });
      await eventually(() => isSettled(house));
      await house.send(create('ses_run'));
      await house.send({ ...start('ses_run', 'run_1'), commandId: 'replay-1' });
      await eventually(async () => (await house.count('seen')) === 3);
      expect(await house.count('deliveries')).toBe(1);
      expect(await house.count('effects', `kind = 'run-call'`)).toBe(0);
      expect(await house.log('ses_run')).toEqual([]);
    });

    it('leaves one dead letter of a delivery, though two rounds of it report the end', async () => {
      const house = await open();
      await house.host();
      const [next, first] = [house.nextCall(), nextDelivery(house)];
      await house.startRun({ id: 'run_1' });
      await house.send(calledTools('ses_run', (await next).callId, VERDICT));
      const { effectId } = await first;
      await house.send(report(effectId, 'exhausted', 5));
      await house.send(report('run_1-callback-late', 'exhausted', 5));
      await eventually(async () => (await house.count('seen')) === 4);
      await house.send(report('run_1-callback-later', 'exhausted', 5));
      await eventually(async () => (await house.count('seen')) === 5);
      expect(await house.count('dead_letters')).toBe(1);
    });

    it('calls nobody back for a run without an address, and deletes its session when it is settled', async () => {
      const house = await open();
      await house.host();
      const next = house.nextCall();
      await house.startRun({ id: 'run_1', callbackUrl: null });
      await house.send(calledTools('ses_run', (await next).callId, VERDICT));
      await eventually(async () => (await house.count('sessions', 'deleted_at is not null')) === 1);
      expect(await house.count('deliveries')).toBe(0);
      expect(await runOf(house)).toMatchObject({ state: 'succeeded' });
    });

    it('does what is left of a delivery for a session that is gone, as a replay needs it', async () => {
      const house = await open();
      await house.host();
      const [next, delivery] = [house.nextCall(), nextDelivery(house)];
      await house.startRun({ id: 'run_1' });
      await house.send(calledTools('ses_run', (await next).callId, VERDICT));
      await house.send(report((await delivery).effectId, 'exhausted', 5));
      await eventually(async () => (await house.count('sessions', 'deleted_at is not null')) === 1);
      // The worker says so once more, of a round that was published twice.
      await house.send(report('run_1-callback-again', 'exhausted', 5));
      await eventually(async () => (await house.count('seen', `command_id = 'run_1-callback-again'`)) === 1);
      expect(await house.count('dead_letters')).toBe(1);
      await house.rows(`update deliveries set state = 'open', attempts = 0`);
      const again = nextDelivery(house);
      await house.send(report('run_1-callback-replay-1', 'failed', 1));
      await house.send(report((await again).effectId, 'delivered', 2));
      await eventually(async () => (await house.rows<{ state: string }>('select state from deliveries'))[0]?.state === 'delivered');
    });
  });
}
