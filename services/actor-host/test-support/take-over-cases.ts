import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { COMMAND_VERSION, type CommandOf } from '#bus/messages/session.ts';
import { calledTools, completed, create, post, start } from './commands.ts';
import { HEADER, isSettled, nextDelivery, nextItem, report, runOf, VERDICT } from './run-helpers.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

/** More than a mailbox takes, and a commit, before the reader pauses. */
const OTHER_COMMANDS = 1_200;
/** So many are in the mailbox before the first commit, which takes fewer. */
const DELIVERED_AT_ONCE = 300;

const patch = {
  ...{ ...HEADER, v: COMMAND_VERSION, type: 'event.patch', sessionId: 'ses_run', commandId: 'patch-1' },
  ...{ eventId: 'evt_none', setMetadata: {}, unsetMetadata: [] },
} satisfies CommandOf<'event.patch'>;

/** Cases of a time without a host, in which a result is stored and then the timer of what it ends comes due. */
export function takeOverCases(open: () => Promise<TestCluster>): void {
  describe('a result in the command log that no host has read before the timer of its wait came due', () => {
    it('DESIGN 5: a run whose output was stored before its deadline succeeds', async () => {
      const cluster = await open();
      const host = await cluster.host();
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1' });
      const { callId } = await next;
      await host.stop();
      await cluster.send(calledTools('ses_run', callId, VERDICT));
      await makeDue(cluster, 'run_1-deadline');
      await cluster.host();
      await eventually(() => isSettled(cluster));

      expect(await runOf(cluster)).toMatchObject({ state: 'succeeded', error: null });
      expect(await cluster.count('timers', `key = 'run_1-deadline'`)).toBe(0);
    });

    it('DESIGN 5: the result of a tool call that must not be repeated reaches the model', async () => {
      const cluster = await open();
      const host = await cluster.host();
      const tools = [{ name: 'refund', title: null, description: null, inputSchema: { type: 'object' }, repeatable: false }];
      await cluster.rows(`insert into tool_lists (hash, tools) values ('h1', $1::json)`, [JSON.stringify(tools)]);
      const listing = nextItem(cluster, 'tool') as Promise<{ effectId: string }>;
      await cluster.startRun({ id: 'run_1', routineId: 'refund' });
      const { effectId: listId } = await listing;
      const asked = cluster.nextCall();
      const about = (callId: string) => ({ ...HEADER, sessionId: 'ses_run', commandId: callId, callId, ...actorFields('run_1') });
      await cluster.send({ ...about(listId), type: 'tools.listed', lists: { shop: 'h1' }, unavailable: {} });
      const { callId } = await asked;
      const calling = nextItem(cluster, 'tool') as Promise<{ effectId: string }>;
      await cluster.send(calledTools('ses_run', callId, [{ id: 'c1', name: 'shop__refund', arguments: {} }]));
      const { effectId } = await calling;
      await cluster.rows(`insert into claims (effect_id) values ($1)`, [effectId]);
      await host.stop();
      await cluster.send({ ...about(effectId), type: 'tool.completed', outcome: { type: 'result', data: { refunded: 12 }, metadata: {}, isError: false } });
      await makeDue(cluster, `${effectId}-overdue`);
      const askedAgain = cluster.nextCall();
      await cluster.host();

      expect(JSON.stringify((await askedAgain).request.messages.at(-1))).toContain('refunded');
    });

    it('DESIGN 5: the verdict on a message that is moderated counts, and its turn goes on', async () => {
      const cluster = await open();
      const host = await cluster.host();
      const checking = cluster.nextCall();
      await cluster.send(create('ses_a'));
      await cluster.send({ ...post('ses_a', 'hello'), v: COMMAND_VERSION, moderation: 'auto' });
      const { callId } = await checking;
      await host.stop();
      await cluster.send({ ...completed('ses_a', callId, ''), ...actorFields(callId) });
      await makeDue(cluster, `${callId}-overdue`);
      const replying = cluster.nextCall();
      await cluster.host();
      const verdict = async () => ((await cluster.log('ses_a'))[0]?.metadata['moderation'] as { status: string } | undefined)?.status;
      await eventually(async () => (await verdict()) !== 'pending');
      expect(await verdict()).toBe('passed');
      await cluster.send(completed('ses_a', (await replying).callId, 'Hello!'));
      await eventually(async () => (await cluster.log('ses_a')).at(-1)?.kind === 'status' && (await cluster.log('ses_a')).length > 4);

      expect((await cluster.log('ses_a')).slice(-2)).toMatchObject([{ kind: 'assistant_message' }, { status: 'ready' }]);
    });

    it.each([
      // More than one batch of the commit loop: the timer waits in the mailbox.
      ['many commands', `start-${DELIVERED_AT_ONCE - 1}`, (cluster: TestCluster) => sendOthers(cluster, DELIVERED_AT_ONCE)],
      // A commit of its own, in the batch that has the timer too.
      ['a change of the log', patch.commandId, (cluster: TestCluster) => cluster.send(patch)],
    ] as const)('a callback that was reported as failed has one next attempt, with %s between the report and the timer', async (_between, lastId, send) => {
      const cluster = await open();
      const host = await cluster.host();
      const [next, delivery] = [cluster.nextCall(), nextDelivery(cluster)];
      await cluster.startRun({ id: 'run_1' });
      await cluster.send(calledTools('ses_run', (await next).callId, VERDICT));
      const { effectId } = await delivery;
      await host.stop();
      await cluster.send({ ...report(effectId, 'failed', 1), retryAfterMs: 60_000 });
      await send(cluster);
      await makeDue(cluster, `${effectId}-overdue`);
      await cluster.host();
      await eventually(async () => (await cluster.count('seen', `command_id = '${lastId}'`)) === 1);
      await cluster.send(create('ses_a'));
      await eventually(async () => (await cluster.count('sessions', `id = 'ses_a'`)) === 1);

      expect(await cluster.rows('select key from timers')).toEqual([{ key: `${effectId}-due` }]);
      expect(await cluster.count('effects', `kind = 'delivery' and state = 'open'`)).toBe(0);
    });

    it.each(['behind', 'before'] as const)('is applied first when it stands %s many other commands, and the timer changes nothing', async (where) => {
      const cluster = await open();
      const host = await cluster.host();
      const next = cluster.nextCall();
      await cluster.startRun({ id: 'run_1' });
      const { callId } = await next;
      await host.stop();
      const sendResult = () => cluster.send(calledTools('ses_run', callId, VERDICT));
      if (where === 'before') await sendResult();
      await sendOthers(cluster, OTHER_COMMANDS);
      if (where === 'behind') await sendResult();
      await makeDue(cluster, 'run_1-deadline');
      await cluster.host();
      await eventually(async () => (await isSettled(cluster)) && (await cluster.count('seen', `command_id like 'start-%'`)) === OTHER_COMMANDS);

      expect(await runOf(cluster)).toMatchObject({ state: 'succeeded' });
      // A command has disarmed it while it was held.
      if (where === 'before') expect(await cluster.count('seen', `command_id = 'run_1-deadline'`)).toBe(0);
    });
  });
}

/** In the partition of the run; they change nothing. */
async function sendOthers(cluster: TestCluster, length: number): Promise<void> {
  await Promise.all(Array.from({ length }, (_, n) => cluster.send({ ...start('ses_run', `run_${n}x`), commandId: `start-${n}` })));
}

/** As if the time without a host had been that long. */
async function makeDue(cluster: TestCluster, key: string): Promise<void> {
  const due = await cluster.rows(`update timers set due_at = now() - interval '1 second' where key = $1 returning key`, [key]);
  expect(due).toHaveLength(1);
}
