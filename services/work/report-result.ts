import { setTimeout as pause } from 'node:timers/promises';
import type { CommandLog } from '#bus/bus.ts';
import type { CommandOf, ResultType } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import { type Failure, failureOf } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { ItemHeader, ResultCommand } from './item-kind.ts';
import type { RunningItem } from './running-items.ts';

/** Long retries: the result cost a model call, or may be of a call that must not happen twice. */
const RETRY_MS = 500;
const MAX_TRIES = 60;

interface Reported {
  header: ItemHeader;
  sessionId: string;
  command: ResultCommand;
  /** The command in place of one that exceeds the largest body; null: there is none. */
  whenTooLarge(failure: Failure): ResultCommand | null;
}

interface ReportDeps {
  commands: CommandLog;
  clock: Clock;
  log: Log;
}

/**
 * Appends a result to the command log. Its command id is the effect's: the log's dedupe window and the session's processed commands
 * refuse the result of a redelivered item. The retries end when the lease is lost, since another worker may have the item by then; those of a kept item,
 * whose result no other worker has, at its deadline.
 *
 * @throws the log's last error
 */
export async function reportResult({ header, sessionId, command, whenTooLarge }: Reported, running: RunningItem, deps: ReportDeps): Promise<void> {
  const { id, traceparent } = header;
  const textOf = (result: ResultCommand) => {
    const sentAtMs = deps.clock.nowMs();
    // One literal: V8 keeps an object into which two are spread in a hash table, which takes three times as long to write.
    return JSON.stringify({ v: 1, sessionId, commandId: id, sentAtMs, answerTo: null, traceparent, callId: id, ...result } satisfies CommandOf<ResultType>);
  };
  let body = textOf(command);
  for (let tries = 1; ; tries += 1) {
    try {
      await deps.commands.append(partitionOf(sessionId), id, body);
      failPoint('item.reported');
      return;
    } catch (error) {
      if (tries >= MAX_TRIES || running.isLeaseLost) throw error;
      const failure = failureOf(error);
      const shorter = failure.code === 'bus.body_too_large' ? whenTooLarge(failure) : null;
      if (shorter !== null) body = textOf(shorter);
      deps.log.warn({ err: error, message_id: id }, 'the result of a work item could not be stored yet');
      await pause(RETRY_MS, undefined, { signal: running.leaseLost }).catch(() => {}); // no fail point: pauses
    }
  }
}
