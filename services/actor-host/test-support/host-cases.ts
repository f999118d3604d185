import { describe, expect, it } from 'vitest';
import { MACHINE_VERSION } from '#actors/kinds/snapshots.ts';
import { PARTITION_COUNT, partitionOf } from '#bus/partition.ts';
import { addresses, patternOf, subjectOf } from '#bus/subjects.ts';
import { create, post } from './commands.ts';
import { eventually, type HostUnderTest, quickTimes, type TestCluster } from './test-cluster.ts';

/** Cases of several hosts: ownership when one of them starts, stops, dies or is paused. */
export function hostCases(open: () => Promise<TestCluster>): void {
  const ownersIn = async (cluster: TestCluster) => {
    const rows = await cluster.rows<{ owner: string | null; n: number }>('select owner, count(*) as n from parts group by owner');
    return new Map(rows.map((row) => [row.owner, row.n]));
  };
  const ownerOf = async (cluster: TestCluster, sessionId: string) =>
    (await cluster.rows<{ owner: string | null }>('select owner from parts where p = $1', [partitionOf(sessionId)]))[0]?.owner ?? null;
  /** Whether exactly these hosts share the partitions. */
  const areSharedBy = async (cluster: TestCluster, ...hosts: { id: string }[]) => {
    const owners = await ownersIn(cluster);
    return owners.size === hosts.length && hosts.every(({ id }) => owners.has(id));
  };
  const expectDense = async (cluster: TestCluster, sessionId: string) => {
    const log = await cluster.log(sessionId);
    expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
    return log;
  };
  /** A session in a partition of the given host. */
  const sessionOf = async (cluster: TestCluster, host: { id: string }) => {
    for (let n = 0; ; n += 1) if ((await ownerOf(cluster, `ses_${n}`)) === host.id) return `ses_${n}`;
  };

  describe('hosts together', () => {
    it('DESIGN 4: hosts share the partitions, and a host that joins gets its share without a wait for clients', async () => {
      const cluster = await open();
      const first = await cluster.host();
      expect((await ownersIn(cluster)).get(first.id)).toBe(PARTITION_COUNT);
      const second = await cluster.host();
      await eventually(() => areSharedBy(cluster, first, second));
      const third = await cluster.host();
      await eventually(() => areSharedBy(cluster, first, second, third));
    });

    it('a host acquires again what it has lost unnoticed, though no command shows the loss', async () => {
      const cluster = await open();
      const host = await cluster.host();
      const [before] = await cluster.rows<{ epoch: number }>('select epoch from parts where p = 5');
      // As after another host acquired and released it while this one was paused.
      await cluster.rows('update parts set owner = null, epoch = epoch + 1 where p = 5');

      await eventually(async () => (await ownersIn(cluster)).get(host.id) === PARTITION_COUNT);
      const [after] = await cluster.rows<{ epoch: number }>('select epoch from parts where p = 5');
      expect(after?.epoch).toBe((before?.epoch ?? 0) + 2);
    });

    it('DESIGN 4: a host that leaves sets the owner null after its last commit, and its partitions are served at once', async () => {
      const cluster = await open();
      const [first, second] = [await cluster.host({ times: { beatMs: 60_000 } }), await cluster.host({ times: { beatMs: 60_000 } })];
      await eventually(() => areSharedBy(cluster, first, second));
      const sessionId = await sessionOf(cluster, second);
      await cluster.send(create(sessionId));
      await eventually(() => cluster.replies.length === 1);
      // With a minute between two rounds only the notice of the leaving host makes the others look.
      await second.stop();
      await cluster.send({ ...post(sessionId, 'still there?'), triggersTurn: false });
      await eventually(() => cluster.replies.length === 2);

      expect(await ownerOf(cluster, sessionId)).toBe(first.id);
      expect(await cluster.rows('select id from hosts')).toEqual([{ id: first.id }]);
      await expectDense(cluster, sessionId);
    });

    it.each([
      ['refuses', (host: HostUnderTest) => host.crash()],
      ['does not answer', (host: HostUnderTest) => host.pause()],
    ])('stops in time though its database %s, and another applies what it had in hand', async (_, lose) => {
      const cluster = await open();
      // A machine that is busy may deliver the command later than a host without its database keeps its partitions.
      const host = await cluster.host({ stopWithinMs: 200, times: { ...quickTimes, dropAfterMs: 60_000 } });
      lose(host);
      await cluster.send(create('ses_1'));
      await eventually(() => host.hasCommand());
      // Only the stop's limit ends it: the database answers once this has returned.
      await host.stopAsItIs();
      expect(cluster.warnings.filter(({ message }) => message.startsWith('the last commits could not be stored in time'))).toHaveLength(1);
      await cluster.host({ times: quickTimes });
      await eventually(() => cluster.replies.length === 1);
      // The statement in flight at the stop arrives now, and is fenced.
      host.wake();
      await cluster.send(post('ses_1', 'hello'));
      await eventually(() => cluster.replies.length === 2);
      expect(cluster.fence.breaches).toEqual([]);
      expect((await cluster.log('ses_1'))[0]).toMatchObject({ kind: 'user_message', offset: 0 });
    });

    it('DESIGN 4: a dead host is replaced when its heartbeat is five seconds old, and what it had accepted is not lost', async () => {
      const cluster = await open();
      const [first, second] = [await cluster.host({ times: quickTimes }), await cluster.host({ times: quickTimes })];
      await eventually(() => areSharedBy(cluster, first, second));
      const sessionId = await sessionOf(cluster, second);
      await cluster.send(create(sessionId));
      await eventually(() => cluster.replies.length === 1);
      second.crash();
      await cluster.send({ ...post(sessionId, 'hello?'), triggersTurn: false });
      await eventually(async () => (await cluster.log(sessionId)).length === 1);

      expect(await ownerOf(cluster, sessionId)).toBe(first.id);
      expect((await ownersIn(cluster)).get(first.id)).toBe(PARTITION_COUNT);
    });

    it('DESIGN 4: a partition with a running owner is not acquired', async () => {
      const cluster = await open();
      await (await cluster.host({ times: quickTimes })).stop();
      await cluster.rows(`update parts set owner = 'stubborn' where p < 8`);
      await cluster.rows(`insert into hosts (id, machine_v, seen_at) values ('stubborn', 1, now() + interval '1 hour')`);
      const host = await cluster.host({ times: quickTimes });
      expect(await ownersIn(cluster)).toEqual(
        new Map([
          ['stubborn', 8],
          [host.id, PARTITION_COUNT - 8],
        ]),
      );
      await cluster.rows(`update hosts set seen_at = now() - interval '1 minute' where id = 'stubborn'`);
      await eventually(() => areSharedBy(cluster, host));
    });

    it('DESIGN 4: the epoch fences a host that was paused during a take-over: none of its later writes is stored', async () => {
      const cluster = await open();
      const pausedHost = await cluster.host({ times: quickTimes });
      await cluster.send(create('ses_a'));
      await eventually(() => cluster.replies.length === 1);
      pausedHost.pause();
      await cluster.send({ ...post('ses_a', 'one'), triggersTurn: false });
      const survivor = await cluster.host({ times: quickTimes });
      await eventually(async () => (await cluster.log('ses_a')).length === 1);
      await cluster.send({ ...post('ses_a', 'two'), triggersTurn: false });
      await eventually(async () => (await cluster.log('ses_a')).length === 2);
      // Its commit of the first message arrives now, after both are stored.
      pausedHost.wake();
      await eventually(() => areSharedBy(cluster, pausedHost, survivor));
      await cluster.send({ ...post('ses_a', 'three'), triggersTurn: false });
      await eventually(async () => (await cluster.log('ses_a')).length === 3);

      expect((await expectDense(cluster, 'ses_a')).map((event) => 'text' in event && event.text)).toEqual(['one', 'two', 'three']);
    });

    it('DESIGN 4: a host that could not write its heartbeat drops its partitions by itself', async () => {
      const cluster = await open();
      const host = await cluster.host({ times: quickTimes });
      await cluster.send(create('ses_a'));
      await eventually(() => cluster.replies.length === 1);
      host.pause();
      await new Promise((resolve) => setTimeout(resolve, quickTimes.dropAfterMs + 2 * quickTimes.beatMs));
      await cluster.send({ ...post('ses_a', 'while it slept'), triggersTurn: false });
      host.wake();
      await eventually(() => cluster.replies.length === 2);
      // It acquired its partitions again, instead of continuing under the old epoch.
      const [row] = await cluster.rows<{ epoch: number }>('select epoch from parts where p = $1', [partitionOf('ses_a')]);
      expect(row?.epoch).toBeGreaterThan(1);
    });

    it('DESIGN 4: no host acquires a partition above its own version, and a newer one gets all', async () => {
      const cluster = await open();
      const old = await cluster.host();
      const newer = await cluster.host({ machineVersion: MACHINE_VERSION + 1 });
      await eventually(() => areSharedBy(cluster, newer));
      expect(await cluster.rows('select distinct machine_v from parts')).toEqual([{ machine_v: MACHINE_VERSION + 1 }]);
      await newer.stop();
      // The old host is alone now, and must not acquire what the newer one has written.
      await cluster.send(create('ses_a'));
      const another = await cluster.host({ machineVersion: MACHINE_VERSION + 1 });
      await eventually(() => cluster.replies.length === 1);
      expect(await areSharedBy(cluster, another)).toBe(true);
      expect((await ownersIn(cluster)).has(old.id)).toBe(false);
    });

    it('DESIGN 3: a command of a newer version is left to a newer host, neither applied nor dead-lettered', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_a'));
      await eventually(() => cluster.replies.length === 1);
      await cluster.bus.commands.append(partitionOf('ses_a'), 'from-the-future', JSON.stringify({ v: 4, type: 'session.sing', sessionId: 'ses_a' }));
      const epochOf = async () => (await cluster.rows<{ epoch: number }>('select epoch from parts where p = $1', [partitionOf('ses_a')]))[0]?.epoch ?? 0;
      const before = await epochOf();
      // It is released and acquired again, round after round; the other partitions are served meanwhile.
      await eventually(async () => (await epochOf()) >= before + 2);
      const otherPartition = partitionOf('ses_b') === partitionOf('ses_a') ? 'ses_c' : 'ses_b';
      await cluster.send(create(otherPartition));
      await eventually(() => cluster.replies.length === 2);
      expect(await cluster.count('dead_letters')).toBe(0);
    });

    it('DESIGN 4: what an older host had to release is acquired by the newer one that starts', async () => {
      const cluster = await open();
      await cluster.host();
      await cluster.send(create('ses_a'));
      await eventually(() => cluster.replies.length === 1);
      await cluster.bus.commands.append(partitionOf('ses_a'), 'from-the-future', JSON.stringify({ v: 4, type: 'session.sing', sessionId: 'ses_a' }));
      await eventually(async () => ((await cluster.rows<{ epoch: number }>('select max(epoch) as epoch from parts'))[0]?.epoch ?? 0) >= 2);
      const newer = await cluster.host({ machineVersion: MACHINE_VERSION + 1 });
      await eventually(() => areSharedBy(cluster, newer));
    });

    it('acquires each partition once, however many notices of other hosts come while it starts', async () => {
      const cluster = await open();
      let [goOn, isAsked] = [() => {}, false];
      const opening = cluster.host({}, { stalled: { until: new Promise<void>((resolve) => (goOn = resolve)), onAsked: () => (isAsked = true) } });
      await eventually(() => isAsked);
      // In the middle of its first round.
      cluster.bus.notices.publish(subjectOf(addresses.hosts, 'another'), '{"v":1}');
      for (let n = 0; n < 10; n += 1) await cluster.count('hosts');
      goOn();
      await opening;
      expect(await cluster.rows('select distinct epoch from parts')).toEqual([{ epoch: 1 }]);
    });

    it('DESIGN 4: a host without replies of the broker retains its partitions while no other host has the broker', async () => {
      const cluster = await open();
      // Longer: a host that drops its partitions on a busy machine acquires them under another epoch.
      const times = { beatMs: 100, expiresAfterMs: 3_000, dropAfterMs: 2_500, cutOffMs: 4_000 };
      const [first, second] = [await cluster.host({ times }), await cluster.host({ times })];
      await eventually(() => areSharedBy(cluster, first, second));
      await cluster.send(create('ses_a'));
      await eventually(() => cluster.replies.length === 1);
      const owned = () => cluster.rows('select p, owner, epoch from parts order by p');
      const before = await owned();
      const goOn = [first, second].map((host) => host.stallLog());
      const longestSilentMs = async () =>
        (await cluster.rows<{ ms: number }>('select (extract(epoch from clock_timestamp() - min(bus_seen_at)) * 1000)::float8 as ms from hosts'))[0]?.ms ?? 0;
      await eventually(async () => (await longestSilentMs()) > times.cutOffMs + 5 * times.beatMs);
      await cluster.send({ ...post('ses_a', 'still there?'), triggersTurn: false });
      await eventually(() => cluster.replies.length === 2);
      expect(await owned()).toEqual(before);
      // Nothing moves to the one that reconnects first either.
      for (const answer of goOn) {
        answer();
        await eventually(async () => (await cluster.rows(`select id from hosts where clock_timestamp() - bus_seen_at < interval '200 ms'`)).length > 0);
      }
      await eventually(async () => (await longestSilentMs()) < times.expiresAfterMs);
      expect(await owned()).toEqual(before);
    });

    it('DESIGN 4: a host without replies of the broker releases its partitions to hosts that have them, and gets its share again afterwards', async () => {
      const cluster = await open();
      const [first, second] = [await cluster.host({ times: quickTimes }), await cluster.host({ times: quickTimes })];
      await eventually(() => areSharedBy(cluster, first, second));
      const share = await cluster.rows('select p from parts where owner = $1 order by p', [second.id]);
      const sessionId = await sessionOf(cluster, second);
      const goOn = second.stallLog();
      await eventually(() => areSharedBy(cluster, first));
      await cluster.send(create(sessionId));
      await eventually(() => cluster.replies.length === 1);
      // Its heartbeats go on, and name what it lacks.
      expect(await cluster.count('hosts', `seen_at > clock_timestamp() - interval '1 second'`)).toBe(2);
      goOn();
      await eventually(() => areSharedBy(cluster, first, second));
      expect(await cluster.rows('select p from parts where owner = $1 order by p', [second.id])).toEqual(share);
      await cluster.send({ ...post(sessionId, 'and back'), triggersTurn: false });
      await eventually(() => cluster.replies.length === 2);
      await expectDense(cluster, sessionId);
    });

    it('DESIGN 4: a take-over publishes again what the outbox holds, under the same id, marked, and announces the partition', async () => {
      const cluster = await open();
      const first = await cluster.host();
      const next = cluster.nextCall();
      await cluster.send(create('ses_a'));
      await cluster.send(post('ses_a', 'hello'));
      const { item, ...call } = await next;
      await first.stop();
      // As if that host had died between its commit and the publish.
      await cluster.rows('update effects set unpublished = true where id = $1', [call.callId]);
      await cluster.loseBus();
      const announced: string[] = [];
      await cluster.bus.notices.subscribe(patternOf(addresses.partitions), (subject, body) => announced.push(`${subject} ${body}`)).ready();
      const again = cluster.nextCall();
      await cluster.host({ times: { callSilenceMs: 300 } });

      const { item: secondItem, ...secondCall } = await again;
      expect(secondItem.messageId).toBe(item.messageId);
      expect(call.reply).toMatchObject({ sessionId: 'ses_a', epoch: 1 });
      expect(secondCall).toEqual({ ...call, republished: true, reply: { ...call.reply, epoch: 2 } });
      await eventually(() => announced.length === PARTITION_COUNT);
      expect(announced).toContain(`part.${partitionOf('ses_a')} ${JSON.stringify({ v: 1, epoch: 2 })}`);
    });

    it('DESIGN 9: a host that was without the broker announces its partitions: notices of its commits are lost', async () => {
      const cluster = await open();
      const [first, second] = [await cluster.host(), await cluster.host()];
      await eventually(() => areSharedBy(cluster, first, second));
      const owned = (await cluster.rows<{ p: number }>('select p from parts where owner = $1', [first.id])).map(({ p }) => `part.${p}`);
      const announced: string[] = [];
      await cluster.bus.notices.subscribe(patternOf(addresses.partitions), (subject) => announced.push(subject)).ready();
      first.reconnect();

      await eventually(() => owned.every((subject) => announced.includes(subject)));
    });

    it('DESIGN 4: the message at the cursor shows that a log was lost: the commands of the new one are applied, though its sequences are lower', async () => {
      const cluster = await open();
      const host = await cluster.host();
      for (let n = 0; n < 20; n += 1) await cluster.send({ ...post('ses_a', String(n)), triggersTurn: false });
      await cluster.send(create('ses_a'));
      await eventually(() => cluster.replies.length === 21);
      await host.stop();
      await cluster.loseBus();
      await cluster.send({ ...post('ses_a', 'on the new log'), triggersTurn: false });
      await cluster.host();
      await eventually(async () => (await cluster.log('ses_a')).length === 1);
    });

    it('DESIGN 4: one host purges for all, below the lowest cursor of any', async () => {
      const cluster = await open();
      const [first, second] = [await cluster.host({ purgeEveryMs: 30 }), await cluster.host({ purgeEveryMs: 30 })];
      await eventually(() => areSharedBy(cluster, first, second));
      for (let n = 0; n < 10; n += 1) await cluster.send(create(`ses_${n}`));
      await eventually(() => cluster.replies.length === 10);
      const { lastSequence } = await cluster.bus.commands.state();
      // The cursors of idle partitions advance too, or the log could not be purged to its end.
      await eventually(async () => (await cluster.bus.commands.state()).firstSequence === lastSequence);
      expect(await cluster.bus.commands.at(lastSequence)).not.toBeNull();
      expect(await cluster.count('parts', `cursor_msg is null`)).toBe(0);
    });

    it('loses nothing of sessions while hosts join, leave, die and are paused under load', async () => {
      const cluster = await open();
      cluster.answerAllCalls();
      const ids = Array.from({ length: 60 }, (_, index) => `ses_${index}`);
      const first = await cluster.host({ times: quickTimes });
      await Promise.all(ids.map((id) => cluster.send(create(id))));
      const second = await cluster.host({ times: quickTimes });
      const send = (round: number) => Promise.all(ids.map((id) => cluster.send(post(id, `message ${round}`))));
      await send(0);
      const third = await cluster.host({ times: quickTimes });
      await send(1);
      first.crash();
      await send(2);
      second.pause();
      await send(3);
      await cluster.host({ times: quickTimes });
      await third.stop();
      await send(4);
      second.wake();
      await eventually(
        async () => (await cluster.count('effects', `state = 'open'`)) === 0 && (await cluster.count('events', `kind = 'user_message'`)) === ids.length * 5,
      );
      for (const id of ids) {
        const log = await expectDense(cluster, id);
        expect(log.flatMap((event) => (event.kind === 'user_message' ? [event.text] : []))).toEqual([0, 1, 2, 3, 4].map((round) => `message ${round}`));
        const trace = new Map<string, number>();
        for (const event of log) if (event.kind === 'status' && event.status === 'ready') trace.set(event.trace_id, (trace.get(event.trace_id) ?? 0) + 1);
        expect([...trace.values()].every((count) => count === 1)).toBe(true);
        expect(log.at(-1)).toMatchObject({ status: 'ready' });
      }
    });
  });
}
