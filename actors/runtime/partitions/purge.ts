import type { CommandLog } from '#bus/bus.ts';
import { fingerprintOf, hasFingerprint } from '#bus/position-fingerprint.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { RuntimeStore } from '../../store/runtime-store.ts';
import type { Mailbox } from '../apply/mailbox.ts';

const PURGE_EVERY_MS = 10_000;
/** At most this often. */
const SWEEP_EVERY_MS = 10_000;
/** Its owner purges the log for all hosts. */
const PURGING_PARTITION = 0;

export interface PurgeDeps {
  commands: CommandLog;
  store: Pick<RuntimeStore, 'sweep'> & { partitions: Pick<RuntimeStore['partitions'], 'lowestCursor'> };
  /** Owned by this host. */
  mailboxes(): Mailbox[];
  log: Log;
  /** Shorter in tests. */
  everyMs?: number;
}

/**
 * Purges the command log below the lowest cursor. Partitions without commands would hold it back, so their cursors are moved along. Also sweeps
 * rows that workers leave in the store.
 */
export function startPurging(deps: PurgeDeps): { stop(): Promise<void> } {
  let running: Promise<void> | null = null;
  let sweptAtMs = Number.NEGATIVE_INFINITY;
  const sweepNowAndThen = async () => {
    if (!isPurging(deps) || performance.now() - sweptAtMs < SWEEP_EVERY_MS) return;
    sweptAtMs = performance.now();
    await deps.store.sweep();
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

/** Cursors moved now allow the next purge. */
async function purgeOnce(deps: PurgeDeps): Promise<void> {
  const mailboxes = deps.mailboxes();
  if (isPurging(deps)) await purge(deps);
  if (mailboxes.length > 0) await moveIdleCursors(deps.commands, mailboxes);
}

/** For all partitions at once; the command at the lowest cursor stays. */
async function purge({ commands, store }: PurgeDeps): Promise<void> {
  const lowest = await store.partitions.lowestCursor();
  if (lowest === null || lowest.sequence <= 1) return;
  // By fingerprint: a log lost or rolled back may have unread commands at the sequences of old cursors.
  await commands.purge(lowest.sequence, lowest);
}

async function moveIdleCursors(commands: CommandLog, mailboxes: readonly Mailbox[]): Promise<void> {
  // Read before the partitions: later commands have higher sequences, so a partition without commands now has none up to here.
  const { lastSequence } = await commands.state();
  const behind = mailboxes.filter(({ claim, waiting }) => claim.cursor < lastSequence && waiting === 0);
  if (behind.length === 0) return;
  const last = await commands.at(lastSequence);
  if (last === null) return;
  // A replaced log may pass old cursors before their readers notice; what is below them is unread.
  const { cursor, cursorFingerprint } = behind.map(({ claim }) => claim).reduce((left, right) => (right.cursor > left.cursor ? right : left));
  if (cursor > 0 && !hasFingerprint(await commands.at(cursor), cursorFingerprint)) return;
  for (const mailbox of behind) {
    if ((await commands.lastOf(mailbox.claim.partition)) <= mailbox.claim.cursor) mailbox.skipTo(lastSequence, fingerprintOf(last));
  }
}
