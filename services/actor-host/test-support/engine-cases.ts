import { describe, expect, it } from 'vitest';
import type { RouterCall } from '#bus/messages/router.ts';
import { storeBundle } from '#shared/config/bundle-store.ts';
import { completed, create, post, remove } from './commands.ts';
import { policyBundle } from './policy-bundle.ts';
import { eventually, quickTimes, type TestCluster } from './test-cluster.ts';

/** Turns of an agent with policies, for any driver. */
export function engineCases(open: () => Promise<TestCluster>): void {
  const begun = async () => {
    const cluster = await open();
    await storeBundle(cluster.database, policyBundle);
    const host = await cluster.host();
    await cluster.send({ ...create('ses_a'), bundleHash: policyBundle.hash });
    await cluster.send({ ...post('ses_a', 'My machine leaks'), bundleHash: policyBundle.hash });
    return { cluster, host };
  };
  const nextCalls = async (cluster: TestCluster, count: number) => {
    const calls: RouterCall[] = [];
    while (calls.length < count) calls.push(await cluster.nextCall());
    return calls.sort((left, right) => left.callId.localeCompare(right.callId));
  };
  const isEnded = async (cluster: TestCluster) => (await statuses(cluster)).includes('ready');
  const statuses = async (cluster: TestCluster) => (await cluster.log('ses_a')).map((event) => (event.kind === 'status' ? event.status : event.kind));

  describe('a turn of an agent with policies', () => {
    it('asks which apply, composes with those, and writes what it found and what it remembers', async () => {
      const { cluster, host } = await begun();
      const calls = await nextCalls(cluster, 2);
      expect(calls.map(({ want, request }) => [want, request.response_format?.type])).toEqual([
        ['none', 'json_schema'],
        ['none', 'json_schema'],
      ]);
      expect(textOf(calls[0])).toContain('the machine leaks');
      expect(textOf(calls[1])).toContain('the customer is angry');
      await judge(cluster, calls[1], [false]);
      await judge(cluster, calls[0], [true, false]);
      const [reply] = await nextCalls(cluster, 1);
      expect(reply?.request.response_format).toBeUndefined();
      expect(textOf(reply)).toContain('When the machine leaks, then ask for a photo of the leak');
      expect(textOf(reply)).not.toContain('order number');
      await cluster.send(completed('ses_a', reply?.callId ?? '', 'Could you send a photo?'));
      await eventually(() => isEnded(cluster));

      expect(await statuses(cluster)).toEqual(['user_message', 'acknowledged', 'processing', 'typing', 'assistant_message', 'ready']);
      const rows = await cluster.rows<{ body: { kind: string } }>('select body from turn_steps order by seq');
      expect(rows.map(({ body }) => body.kind)).toEqual(['began', 'match', 'match', 'resolved', 'applied-check']);
      expect(JSON.stringify(rows)).not.toContain('the machine leaks');
      expect(await cluster.count('agent_states')).toBe(1);

      const [check] = await nextCalls(cluster, 1);
      expect(textOf(check)).toContain('Could you send a photo?');
      await judge(cluster, check, [true]);
      await eventually(async () => (await cluster.count('agent_states')) === 2);
      expect(await cluster.rows('select state from agent_states order by seq desc limit 1')).toMatchObject([{ state: { appliedPolicyIds: ['leak'] } }]);
      expect(await cluster.count('effects', `state = 'open'`)).toBe(0);
      // All of these rows are its own.
      expect(host.turnReads()).toBe(0);

      await cluster.send(remove('ses_a'));
      await eventually(async () => (await cluster.count('turn_steps')) === 0);
      expect(await cluster.count('agent_states')).toBe(0);
    });

    it('goes on at another host from its last recorded answer, and repeats no call that has one', async () => {
      const { cluster, host } = await begun();
      const [first, second] = await nextCalls(cluster, 2);
      await judge(cluster, first, [true, true]);
      await eventually(async () => (await cluster.count('turn_steps')) === 2);
      host.crash();
      const next = await cluster.host({ times: quickTimes });
      await judge(cluster, second, [false]);
      const [reply] = await nextCalls(cluster, 1);
      expect(next.turnReads()).toBeGreaterThan(0);
      expect(textOf(reply)).toContain('ask for a photo');
      expect(textOf(reply)).toContain('ask for the order number');
      await cluster.send(completed('ses_a', reply?.callId ?? '', 'A photo, and the number, please.'));
      await eventually(() => isEnded(cluster));

      expect(await cluster.count('turn_steps')).toBe(5);
      // Two of matching, the reply, and the check after it.
      expect(await cluster.count('effects')).toBe(4);
    });

    it('goes on at another host in the check of its reply, and composes no reply again that is recorded', async () => {
      const { cluster, host } = await begun();
      const [first, second] = await nextCalls(cluster, 2);
      await judge(cluster, first, [false, false]);
      await judge(cluster, second, [true]);
      const [reply] = await nextCalls(cluster, 1);
      await cluster.send(completed('ses_a', reply?.callId ?? '', 'What is wrong?'));
      const [check] = await nextCalls(cluster, 1);
      expect(textOf(check)).toContain('What is wrong?');
      host.crash();
      await cluster.host({ times: quickTimes });
      await follow(cluster, check, [false]);
      const [again] = await nextCalls(cluster, 1);
      expect(textOf(again)).toContain('A first version of this reply was not sent');
      await cluster.send(completed('ses_a', again?.callId ?? '', 'I am sorry! What is wrong?'));
      await eventually(() => isEnded(cluster));

      const said = (await cluster.log('ses_a')).flatMap((event) => (event.kind === 'assistant_message' ? [event.text] : []));
      expect(said).toEqual(['I am sorry! What is wrong?']);
      const rows = await cluster.rows<{ body: { kind: string } }>('select body from turn_steps order by seq');
      expect(rows.map(({ body }) => body.kind)).toEqual(['began', 'match', 'match', 'resolved', 'reply', 'check-reply', 'applied-check']);
    });
  });
}

async function follow(cluster: TestCluster, call: RouterCall | undefined, followed: readonly boolean[]): Promise<void> {
  const verdicts = followed.map((one, index) => ({ id: index + 1, rationale: 'as they say', followed: one }));
  await cluster.send(completed('ses_a', call?.callId ?? '', JSON.stringify({ verdicts })));
}

async function judge(cluster: TestCluster, call: RouterCall | undefined, applies: readonly boolean[]): Promise<void> {
  const verdicts = applies.map((one, index) => ({ id: index + 1, rationale: 'as they say', applies: one }));
  await cluster.send(completed('ses_a', call?.callId ?? '', JSON.stringify({ verdicts })));
}

function textOf(call: RouterCall | undefined): string {
  return JSON.stringify(call?.request.messages);
}
