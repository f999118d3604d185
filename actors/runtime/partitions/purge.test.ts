import { describe, expect, it, vi } from 'vitest';
import type { CommandLog } from '#bus/bus.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { Mailbox } from '../apply/mailbox.ts';
import { startPurging } from './purge.ts';

const WAIT = { timeout: 60_000 };

/** A log with a command at 5, in partition 7, and the last one at 25. */
function logWith(atCursor: { messageId: string; storedAtMs: number } | null) {
  const asked = vi.fn(async (sequence: number) => {
    if (sequence === 25) return { sequence, messageId: 'newest', body: '', storedAtMs: 9 };
    return atCursor === null ? null : { sequence, ...atCursor, body: '' };
  });
  const commands: Pick<CommandLog, 'at' | 'lastOf' | 'state'> = {
    at: asked,
    lastOf: async (partition) => (partition === 7 ? 5 : 0),
    state: async () => ({ created: 'now', firstSequence: 1, lastSequence: 25 }),
  };
  return { asked, commands: commands as CommandLog };
}

/** With all up to 20 applied. */
const mailboxOf = (partition: number) => new Mailbox({ partition, epoch: 1, owner: 'host-1', commitNo: 1, cursor: 20, cursorFingerprint: '@5 old' }, () => {});

async function oneRound(commands: CommandLog, asked: ReturnType<typeof vi.fn>, mailboxes: Mailbox[]): Promise<void> {
  const store = { sweep: async () => {}, partitions: { lowestCursor: async () => null } };
  const purging = startPurging({ commands, store, mailboxes: () => mailboxes, log: silentLog, everyMs: 1 });
  await vi.waitFor(() => expect(asked).toHaveBeenCalledWith(20), WAIT);
  await purging.stop();
}

describe('the cursor of a partition without commands', () => {
  it.each([
    ['another command stands at the cursor', { messageId: 'another', storedAtMs: 5 }],
    ['the same command stands there, but was stored anew', { messageId: 'old', storedAtMs: 6 }],
    ['none does', null],
  ])('stays when the log has grown anew and its reader has not noticed: %s', async (_, atCursor) => {
    const { asked, commands } = logWith(atCursor);
    const mailboxes = [mailboxOf(7), mailboxOf(8)];
    await oneRound(commands, asked, mailboxes);
    expect(mailboxes.map(({ waiting }) => waiting)).toEqual([0, 0]);
  });

  it('DESIGN 4: the cursor of an idle partition moves to the end of the log while the log is the same', async () => {
    const { asked, commands } = logWith({ messageId: 'old', storedAtMs: 5 });
    const mailbox = mailboxOf(8);
    await oneRound(commands, asked, [mailbox]);
    await vi.waitFor(() => expect(mailbox.dequeue(1)).toMatchObject([{ kind: 'skip', toSequence: 25, fingerprint: '@9 newest' }]), WAIT);
  });
});
