import { describe, expect, it } from 'vitest';
import { RETRY_SUFFIX } from '#actors/kinds/delivery/rounds.ts';
import { MACHINE_VERSION } from '#actors/kinds/snapshots.ts';
import type { DeliveryWork } from '#bus/messages/delivery.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { calledTools, create, start } from './commands.ts';
import { isSettled, nextDelivery, report, runOf, VERDICT } from './run-helpers.ts';
import { eventually, type HostUnderTest, type TestCluster } from './test-cluster.ts';

/** Cases of callbacks: one row each, repeated rounds, and one notification of the end. */
export function callbackCases(open: () => Promise<TestCluster>): void {
  describe('callbacks of runs', () => {
    it('DESIGN 5: the command that reports its callback settled deletes the ephemeral session, and the run stays', async () => {
      const cluster = await open();
      await cluster.host();
      const [next, delivery] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const { effectId } = await delivery;
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);
      expect(await cluster.rows('select id, name, ephemeral from customers')).toEqual([{ id: 'cus_run', name: 'Guest', ephemeral: true }]);
      await cluster.send(report(effectId, 'delivered', 1));
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);

      expect(await cluster.rows('select state from deliveries')).toEqual([{ state: 'delivered' }]);
      expect(await cluster.log('ses_run')).toEqual([]);
      expect(await cluster.count('customers')).toBe(0);
      expect(await cluster.count('steps')).toBe(0);
      expect(await cluster.count('timers')).toBe(0);
      expect(await runOf(cluster)).toMatchObject({ state: 'succeeded' });
    });

    it.each([
      ['of the first run', 'run_1', 'run_2'],
      ['of the second run', 'run_2', 'run_1'],
    ])('DESIGN 5: an ephemeral session with two runs stays when the callback %s is settled, until the other is', async (_, early, late) => {
      const cluster = await open();
      await cluster.host();
      const rounds = await twoCallbacks(cluster);
      const settled = (run: string) => cluster.send({ ...report(rounds.get(run) ?? '', 'delivered', 1), deliveryId: `${run}-callback` });
      await settled(early);
      await eventually(async () => (await cluster.count('deliveries', `state = 'delivered'`)) === 1);
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);
      expect(await cluster.count('customers')).toBe(1);
      await settled(late);
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
      expect(await cluster.count('customers')).toBe(0);
    });

    it('DESIGN 5: an ephemeral session whose callback is being repeated stays when a later run without callback is settled', async () => {
      const cluster = await open();
      await cluster.host();
      const [next, first] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const again = nextDelivery(cluster);
      await cluster.send(report((await first).effectId, 'failed', 1));
      const { effectId } = await again;
      const other = cluster.nextCall();
      await cluster.startRun({ id: 'run_2', sessionId: 'ses_run', ephemeral: false, callbackUrl: null });
      await cluster.send(calledTools('ses_run', (await other).callId, VERDICT));
      await eventually(async () => (await cluster.count('runs', `state = 'succeeded'`)) === 2);
      expect(await cluster.count('sessions', 'deleted_at is null')).toBe(1);
      await cluster.send(report(effectId, 'delivered', 2));
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
    });

    it('DESIGN 5: a callback is one row; after a failure its back-off is a timer, and it becomes a dead letter at the end', async () => {
      const cluster = await open();
      await cluster.host();
      const [next, first] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const before = await first;
      const second = nextDelivery(cluster);
      await cluster.send(report(before.effectId, 'failed', 1));
      const again = await second;
      expect(again.effectId).not.toBe(before.effectId);
      expect(again.deliveryId).toBe(before.deliveryId);
      expect(await cluster.count('deliveries')).toBe(1);
      await cluster.send(report(again.effectId, 'exhausted', 5));
      await eventually(async () => (await cluster.count('dead_letters')) === 1);

      expect(await cluster.rows('select id, source, reason from dead_letters')).toEqual([
        { id: 'run_1-callback', source: 'delivery', reason: 'the receiver answered 503' },
      ]);
      expect(await cluster.rows('select state from deliveries')).toEqual([{ state: 'dead' }]);
      expect(await cluster.count('sessions', 'deleted_at is not null')).toBe(1);
    });

    it('DESIGN 6 rule 5: a delivery whose item was lost with its stream is republished by its timer', async () => {
      const cluster = await open();
      await cluster.host();
      const [next, first] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const lost = await first;
      const [timer] = await cluster.rows<{ p: number; command: CommandOf<'effect.overdue'> }>('select p, command from timers');
      expect(timer?.command).toMatchObject({ type: 'effect.overdue', callId: lost.effectId, kind: 'delivery' });
      const second = nextDelivery(cluster);
      // As the timer would send it two and a half minutes later.
      await cluster.send(timer?.command as CommandOf<'effect.overdue'>);
      const again = await second;
      expect(again).toMatchObject({ deliveryId: lost.deliveryId });
      expect(await cluster.rows('select state from effects where id = $1', [lost.effectId])).toEqual([{ state: 'superseded' }]);
    });

    it('calls back once, though the start of a run is replayed after its end', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.startRun({ id: 'run_1', sessionId: 'ses_run', ephemeral: false });
      await eventually(() => isSettled(cluster));
      await cluster.send(create('ses_run'));
      await cluster.send({ ...start('ses_run', 'run_1'), commandId: 'replay-1' });
      await eventually(async () => (await cluster.count('seen')) === 3);
      expect(await cluster.count('deliveries')).toBe(1);
      expect(await cluster.count('effects', `kind = 'run-call'`)).toBe(0);
      expect(await cluster.log('ses_run')).toEqual([]);
    });

    it('stores one dead letter of a delivery, though two rounds of it report the end', async () => {
      const cluster = await open();
      await cluster.host();
      const [next, first] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const { effectId } = await first;
      await cluster.send(report(effectId, 'exhausted', 5));
      await cluster.send(report('run_1-callback-late', 'exhausted', 5));
      await eventually(async () => (await cluster.count('seen')) === 4);
      await cluster.send(report('run_1-callback-later', 'exhausted', 5));
      await eventually(async () => (await cluster.count('seen')) === 5);
      expect(await cluster.count('dead_letters')).toBe(1);
    });

    it('makes no callback for a run without an address, and deletes its session when it is settled', async () => {
      const cluster = await open();
      await cluster.host();
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1', callbackUrl: null });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
      expect(await cluster.count('deliveries')).toBe(0);
      expect(await runOf(cluster)).toMatchObject({ state: 'succeeded' });
    });

    it('executes the rest of a delivery for a deleted session, as a replay needs it', async () => {
      const cluster = await open();
      await cluster.host();
      const [next, delivery] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      await cluster.send(report((await delivery).effectId, 'exhausted', 5));
      await eventually(async () => (await cluster.count('sessions', 'deleted_at is not null')) === 1);
      // A second report, of a round that was published twice.
      await cluster.send(report('run_1-callback-again', 'exhausted', 5));
      await eventually(async () => (await cluster.count('seen', `command_id = 'run_1-callback-again'`)) === 1);
      expect(await cluster.count('dead_letters')).toBe(1);
      await cluster.rows(`update deliveries set state = 'open', attempts = 0`);
      const again = nextDelivery(cluster);
      await cluster.send(report('run_1-callback-replay-1', 'failed', 1));
      await cluster.send(report((await again).effectId, 'delivered', 2));
      await eventually(async () => (await cluster.rows<{ state: string }>('select state from deliveries'))[0]?.state === 'delivered');
    });

    it('DESIGN 5: a drain posts a callback again whose retry is due within its time', async () => {
      const cluster = await open();
      const host = await cluster.host({ drainTimeoutMs: 60_000 });
      const first = await failedOnce(cluster);
      const second = nextDelivery(cluster);
      const stopped = stopOf(host);
      const again = await Promise.race([second, stopped]);
      if (again === 'stopped') expect.fail('the host has stopped without posting again');
      expect(again).toMatchObject({ deliveryId: first.deliveryId });
      await cluster.send(report(again.effectId, 'delivered', 2));
      await stopped;
      expect(await cluster.rows('select state from deliveries')).toEqual([{ state: 'delivered' }]);
      expect(leftBy(cluster)).toEqual([]);
    });

    it('DESIGN 5: callbacks that a drain leaves are counted in the log, with the hosts of their receivers', async () => {
      const cluster = await open();
      const host = await cluster.host({ drainTimeoutMs: 200 });
      await failedOnce(cluster, { callbackUrl: 'https://hooks.example.com:8443/secret?token=secret', retryAfterMs: 600_000 });
      await stopOf(host);
      expect(leftBy(cluster)).toEqual([{ callbacks: 1, in_flight: 0, receivers: ['hooks.example.com:8443'] }]);
      expect(await cluster.rows('select state from deliveries')).toEqual([{ state: 'open' }]);
    });

    it('DESIGN 5: a callback that is in flight when the time of a drain is over counts as left', async () => {
      const cluster = await open();
      const host = await cluster.host({ drainTimeoutMs: 200 });
      const [next, delivery] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      await delivery;
      await stopOf(host);
      expect(leftBy(cluster)).toEqual([{ callbacks: 1, in_flight: 1, receivers: ['example.com'] }]);
    });

    it('DESIGN 5: a host with others leaves waiting callbacks to them at once, and counts none as left', async () => {
      const cluster = await open();
      const { owner, first } = await waitingBesideAnother(cluster, { drainTimeoutMs: 10_000 }, 5_000);
      const second = nextDelivery(cluster);
      expect(await Promise.race([stopOf(owner), second])).toBe('stopped');
      expect(leftBy(cluster)).toEqual([]);
      const again = await second;
      expect(again).toMatchObject({ deliveryId: first.deliveryId });
      await cluster.send(report(again.effectId, 'delivered', 2));
    });

    it.each(['first', 'last'])('DESIGN 5: of hosts that stop together one retries due callbacks: those of the %s to stop', async (index) => {
      const cluster = await open();
      const { owner, other, first } = await waitingBesideAnother(cluster, { drainTimeoutMs: 60_000 }, 2_000);
      const second = nextDelivery(cluster);
      const stopped = Promise.all((index === 'first' ? [owner, other] : [other, owner]).map(stopOf));
      const again = await Promise.race([second, stopped]);
      if (Array.isArray(again)) expect.fail('both hosts have stopped without posting again');
      expect(again).toMatchObject({ deliveryId: first.deliveryId });
      await cluster.send(report(again.effectId, 'delivered', 2));
      await stopped;
      expect(await cluster.rows('select state from deliveries')).toEqual([{ state: 'delivered' }]);
      expect(leftBy(cluster)).toEqual([]);
      expect(await cluster.rows('select id from hosts')).toEqual([]);
    });

    it('DESIGN 5: a stopping host continues what a host releases that began to stop before it', async () => {
      const cluster = await open();
      // Of this id and `earlier` the partition is this one's share, so the host loses it rather than releases it.
      const host = await cluster.host({ hostId: 'later', drainTimeoutMs: 60_000 });
      const first = await failedOnce(cluster, { retryAfterMs: 2_000 });
      await cluster.rows(`insert into hosts (id, machine_v, seen_at, stopping_since) values ('earlier', $1, now() + interval '1 hour', now())`, [
        MACHINE_VERSION,
      ]);
      await cluster.rows(`update parts set owner = 'earlier', epoch = epoch + 1 where p = $1`, [partitionOf('ses_run')]);
      await eventually(() => cluster.errors.some(({ message }) => message === 'partitions are given up'));
      const second = nextDelivery(cluster);
      const stopped = stopOf(host);
      // The other host leaves and did not know that this one stops.
      await eventually(async () => (await cluster.count('hosts', `id <> 'earlier' and stopping_since is null`)) === 0);
      await cluster.rows(`delete from hosts where id = 'earlier'`);
      const again = await Promise.race([second, stopped]);
      if (again === 'stopped') expect.fail('the host has stopped without posting again');
      expect(again).toMatchObject({ deliveryId: first.deliveryId });
      await cluster.send(report(again.effectId, 'delivered', 2));
      await stopped;
      expect(leftBy(cluster)).toEqual([]);
    });

    it('DESIGN 5: callbacks that are left by hosts that stop together are counted in the log', async () => {
      const cluster = await open();
      const { owner, other } = await waitingBesideAnother(cluster, { drainTimeoutMs: 10_000 }, 600_000);
      await Promise.all([owner, other].map(stopOf));
      // Of both hosts, if one took over from the other before its own limit.
      expect(leftBy(cluster).length).toBeGreaterThan(0);
      for (const fields of leftBy(cluster)) expect(fields).toEqual({ callbacks: 1, in_flight: 0, receivers: ['example.com'] });
    });
  });
}

/** Two hosts; one owns the partition of a callback that waits for its retry. */
async function waitingBesideAnother(cluster: TestCluster, config: Parameters<TestCluster['host']>[0], retryAfterMs: number) {
  const hosts = [await cluster.host(config), await cluster.host(config)];
  for (const { id } of hosts) await eventually(async () => (await cluster.count('parts', `owner = '${id}'`)) > 0);
  const first = await failedOnce(cluster, { retryAfterMs });
  const [row] = await cluster.rows<{ owner: string }>('select owner from parts where p = $1', [partitionOf('ses_run')]);
  const owner = hosts.find(({ id }) => id === row?.owner);
  const other = hosts.find(({ id }) => id !== row?.owner);
  if (owner === undefined || other === undefined) expect.fail('no host has the partition');
  return { owner, other, first };
}

/** A run with a callback that failed once and waits for its retry, by default for a second. */
async function failedOnce(
  cluster: TestCluster,
  { callbackUrl, retryAfterMs = 0 }: { callbackUrl?: string; retryAfterMs?: number } = {},
): Promise<DeliveryWork> {
  const [next, delivery] = [cluster.nextCall(), nextDelivery(cluster)];
  await cluster.startRun({ id: 'run_1', ...(callbackUrl === undefined ? {} : { callbackUrl }) });
  await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
  const first = await delivery;
  await cluster.send({ ...report(first.effectId, 'failed', 1), retryAfterMs });
  await eventually(async () => (await cluster.count('timers', `key = '${first.effectId}${RETRY_SUFFIX}'`)) === 1);
  return first;
}

/** Two runs of one ephemeral session, whose callbacks are posted. @returns the round of each run */
async function twoCallbacks(cluster: TestCluster): Promise<ReadonlyMap<string, string>> {
  const rounds = new Map<string, string>();
  for (const run of [{ id: 'run_1' }, { id: 'run_2', sessionId: 'ses_run', ephemeral: false }]) {
    const [next, delivery] = [cluster.nextCall(), nextDelivery(cluster)];
    await cluster.startRun(run);
    await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
    rounds.set(run.id, (await delivery).effectId);
  }
  return rounds;
}

async function stopOf(host: HostUnderTest): Promise<'stopped'> {
  await host.stop();
  return 'stopped';
}

/** Warnings of stops about callbacks that are left. */
function leftBy(cluster: TestCluster): Record<string, unknown>[] {
  return cluster.warnings.filter(({ message }) => message.startsWith('callbacks and events are pending')).map(({ fields }) => fields);
}
