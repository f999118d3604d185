import { describe, expect, it } from 'vitest';
import { commandCheck } from '#actors/runtime/command-check.ts';
import { CommandTags, withTaggedCommands } from '#bus/command-tags.ts';
import type { SessionCommand } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { completed, create, post } from './commands.ts';
import { eventually, type House } from './test-cluster.ts';

const tags = new CommandTags('the secret of a deployment under test');
/** Of commands that any log takes during a test. */
const LATER_MS = Date.UTC(2100, 0);

/** As a gateway sends it. */
function sendTagged(house: House, command: SessionCommand): Promise<{ sequence: number }> {
  return withTaggedCommands(house.bus, tags).commands.append(partitionOf(command.sessionId), command.commandId, JSON.stringify(command));
}

/** What an owner takes from whom. */
export function trustCases(open: () => Promise<House>): void {
  describe('an owner that requires tags', () => {
    it('DESIGN 11: passes over requests without a valid tag and keeps nothing of them, and applies what workers report without one', async () => {
      const house = await open();
      // Slow to look dead: on a busy machine a host that comes back would look as if it had given its partitions up.
      await house.host({ times: { beatMs: 100, deadAfterMs: 60_000, dropAfterMs: 50_000 } }, { check: commandCheck(tags, 0) });
      await sendTagged(house, create('ses_a'));
      await eventually(() => house.answers.length === 1);

      // As a worker that was taken over could: it may publish commands, and holds no secret.
      const forged = { ...post('ses_a', 'forged'), commandId: 'forged' };
      const partition = partitionOf('ses_a');
      await house.send(forged);
      await house.send({ ...forged, commandId: 'other-secret' });
      await house.bus.commands.append(partition, 'other', new CommandTags('a secret that was guessed').tagged(JSON.stringify(forged)));
      await house.bus.commands.append(partition, 'no-json', 'not json');
      await house.bus.commands.append(partition, 'newer', JSON.stringify({ v: 2, type: 'session.sing', sessionId: 'ses_a' }));
      await sendTagged(house, post('ses_a', 'Hello!'));
      const call = await house.nextCall();
      await house.send(completed('ses_a', call.callId, 'a reply'));
      const texts = async () => (await house.log('ses_a')).flatMap((event) => ('text' in event ? [event.text] : []));
      await eventually(async () => (await texts()).length === 2);

      expect(await texts()).toEqual(['Hello!', 'a reply']);
      expect([await house.count('dead_letters'), await house.count('seen', `command_id = 'forged'`)]).toEqual([0, 0]);
      expect(house.answers.filter(({ commandId }) => commandId === 'forged')).toEqual([]);
      expect(await house.rows('select distinct epoch from parts')).toEqual([{ epoch: 1 }]);
    });

    it('DESIGN 11: takes requests without a tag that the log held before tags were required, as of a release before', async () => {
      const house = await open();
      await house.host({}, { check: commandCheck(tags, LATER_MS) });
      await house.send(create('ses_a'));
      await sendTagged(house, { ...post('ses_a', 'tagged'), triggersTurn: false });
      await eventually(() => house.answers.length === 2);

      expect(house.answers.map(({ answer }) => answer.ok)).toEqual([true, true]);
    });
  });
}
