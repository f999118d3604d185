import { describe, expect, it } from 'vitest';
import { commandCheck } from '#actors/runtime/apply/command-check.ts';
import { CommandTags, withTaggedCommands } from '#bus/command-tags.ts';
import type { SessionCommand } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { completed, create, post } from './commands.ts';
import { eventually, type TestCluster } from './test-cluster.ts';

const tags = new CommandTags('the secret of a deployment under test');
/** After any command of a test. */
const LATER_MS = Date.UTC(2100, 0);

/** As a gateway sends it. */
function sendTagged(cluster: TestCluster, command: SessionCommand): Promise<{ sequence: number }> {
  return withTaggedCommands(cluster.bus, tags).commands.append(partitionOf(command.sessionId), command.commandId, JSON.stringify(command));
}

/** Cases of command tags: which senders an owner trusts. */
export function trustCases(open: () => Promise<TestCluster>): void {
  describe('an owner that requires tags', () => {
    it('DESIGN 11: skips requests without a valid tag and stores nothing of them, and applies results of workers without one', async () => {
      const cluster = await open();
      await cluster.host({}, { check: commandCheck(tags, 0) });
      await sendTagged(cluster, create('ses_a'));
      await eventually(() => cluster.replies.length === 1);

      // As a compromised worker could: it may publish commands, and has no secret.
      const forged = { ...post('ses_a', 'forged'), commandId: 'forged' };
      const partition = partitionOf('ses_a');
      await cluster.send(forged);
      await cluster.send({ ...forged, commandId: 'other-secret' });
      await cluster.bus.commands.append(partition, 'other', new CommandTags('a secret that was guessed').tagged(JSON.stringify(forged)));
      await cluster.bus.commands.append(partition, 'no-json', 'not json');
      await cluster.bus.commands.append(partition, 'newer', JSON.stringify({ v: 4, type: 'session.sing', sessionId: 'ses_a' }));
      await sendTagged(cluster, post('ses_a', 'Hello!'));
      const call = await cluster.nextCall();
      await cluster.send(completed('ses_a', call.callId, 'a reply'));
      const texts = async () => (await cluster.log('ses_a')).flatMap((event) => ('text' in event ? [event.text] : []));
      await eventually(async () => (await texts()).length === 2);

      expect(await texts()).toEqual(['Hello!', 'a reply']);
      expect([await cluster.count('dead_letters'), await cluster.count('seen', `command_id = 'forged'`)]).toEqual([0, 0]);
      expect(cluster.replies.filter(({ commandId }) => commandId === 'forged')).toEqual([]);
      expect(await cluster.rows('select distinct epoch from parts')).toEqual([{ epoch: 1 }]);
    });

    it('DESIGN 11: accepts requests without a tag that the log held before tags were required, as of an earlier release', async () => {
      const cluster = await open();
      await cluster.host({}, { check: commandCheck(tags, LATER_MS) });
      await cluster.send(create('ses_a'));
      await sendTagged(cluster, { ...post('ses_a', 'tagged'), triggersTurn: false });
      await eventually(() => cluster.replies.length === 2);

      expect(cluster.replies.map(({ answer }) => answer.ok)).toEqual([true, true]);
    });
  });
}
