import type { CommandLog } from '#bus/bus.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Mailbox } from './mailbox.ts';

/** How often the log is freed of what has been applied. */
const PURGE_EVERY_MS = 10_000;

export interface PurgeDeps {
  commands: CommandLog;
  database: Queryable;
  /** The mailboxes of the partitions that this host owns. */
  mailboxes(): Mailbox[];
  log: Log;
  /** How often; shorter in tests. */
  everyMs?: number;
}

/**
 * Keeps the command log short: everything below the lowest cursor is applied and may go. A partition without commands would hold its
 * cursor, and with it the whole log, so its cursor is moved along.
 */
export function startPurging(deps: PurgeDeps): { stop(): Promise<void> } {
  let running = Promise.resolve();
  const timer = setInterval(() => {
    running = purge(deps).catch((error: unknown) => deps.log.warn({ err: error }, 'the command log could not be purged; it is tried again'));
  }, deps.everyMs ?? PURGE_EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}

/** One round. What it moves along now is purged by the next. */
async function purge({ commands, database, mailboxes }: PurgeDeps): Promise<void> {
  // The rows, not our memory: partitions of other hosts hold the log too.
  const { rows } = await database.query<{ lowest: number }>('select min(cursor) as lowest from parts');
  await commands.purge(rows[0]?.lowest ?? 0);
  // Read before the partitions are looked at: a command that is stored later has a higher sequence, so one without commands now has none up to here.
  const { lastSequence } = await commands.state();
  for (const mailbox of mailboxes()) {
    const { cursor, partition } = mailbox.claim;
    if (cursor >= lastSequence) continue;
    if ((await commands.lastOf(partition)) <= cursor) mailbox.skipTo(lastSequence);
  }
}
