import type { CommandLog } from '#bus/bus.ts';
import { fingerprintOf, hasFingerprint } from '#bus/position-fingerprint.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Mailbox } from './mailbox.ts';
import { sweep } from './sweep.ts';

/** How often the log is freed of what has been applied. */
const PURGE_EVERY_MS = 10_000;
/** How often rows that nothing needs any more are looked for, at most. */
const SWEEP_EVERY_MS = 10_000;
/** The host that owns it purges for all. */
const PURGING_PARTITION = 0;

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
 * cursor, and with it the whole log, so its cursor is moved along. The host that purges also sweeps what workers leave in the database.
 */
export function startPurging(deps: PurgeDeps): { stop(): Promise<void> } {
  let running: Promise<void> | null = null;
  let sweptAtMs = Number.NEGATIVE_INFINITY;
  const sweepNowAndThen = async () => {
    if (!isPurging(deps) || performance.now() - sweptAtMs < SWEEP_EVERY_MS) return;
    sweptAtMs = performance.now();
    await sweep(deps.database);
  };
  const timer = setInterval(() => {
    running ??= purgeOnce(deps)
      .catch((error: unknown) => deps.log.warn({ err: error }, 'the command log could not be purged; it is tried again'))
      .then(sweepNowAndThen)
      .catch((error: unknown) => deps.log.warn({ err: error }, 'rows that nothing needs could not be swept; it is tried again'))
      .finally(() => {
        running = null;
      });
  }, deps.everyMs ?? PURGE_EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}

function isPurging({ mailboxes }: PurgeDeps): boolean {
  return mailboxes().some(({ claim }) => claim.partition === PURGING_PARTITION);
}

/** What it moves along now is purged by the next. */
async function purgeOnce(deps: PurgeDeps): Promise<void> {
  const mailboxes = deps.mailboxes();
  if (isPurging(deps)) await purge(deps);
  if (mailboxes.length > 0) await moveIdleCursors(deps.commands, mailboxes);
}

/** One unfiltered purge for all partitions: the rows say how far it may go, and the command that stands there stays. */
async function purge({ commands, database }: PurgeDeps): Promise<void> {
  const { rows } = await database.query<{ cursor: number; cursor_msg: string | null }>('select cursor, cursor_msg from parts order by cursor limit 1');
  const lowest = rows[0];
  if (lowest === undefined || lowest.cursor <= 1) return;
  // A log that was lost or rolled back and has grown anew holds other commands under the sequences of old cursors: unread ones.
  await commands.purge(lowest.cursor, { sequence: lowest.cursor, fingerprint: lowest.cursor_msg });
}

async function moveIdleCursors(commands: CommandLog, mailboxes: readonly Mailbox[]): Promise<void> {
  // Read before the partitions are looked at: a command that is stored later has a higher sequence, so one without commands now has none up to here.
  const { lastSequence } = await commands.state();
  const behind = mailboxes.filter(({ claim, waiting }) => claim.cursor < lastSequence && waiting === 0);
  if (behind.length === 0) return;
  const last = await commands.at(lastSequence);
  if (last === null) return;
  // A log that has grown anew may reach beyond old cursors before their readers have noticed: what it holds below them is unread.
  const { cursor, cursorFingerprint } = behind.map(({ claim }) => claim).reduce((left, right) => (right.cursor > left.cursor ? right : left));
  if (cursor > 0 && !hasFingerprint(await commands.at(cursor), cursorFingerprint)) return;
  for (const mailbox of behind) {
    if ((await commands.lastOf(mailbox.claim.partition)) <= mailbox.claim.cursor) mailbox.skipTo(lastSequence, fingerprintOf(last));
  }
}
