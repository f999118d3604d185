import { setTimeout as pause } from 'node:timers/promises';
import type { CommandLog } from '#bus/bus.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Between two tries. A result may stand for something that must not happen twice: it is worth waiting until the log takes it. */
const RETRY_MS = 500;
/** After this the item goes back to the queue. */
const MAX_TRIES = 60;

type Result = 'tool.completed' | 'tools.listed' | 'delivery.reported';
type Header = 'v' | 'sessionId' | 'commandId' | 'sentAtMs' | 'answerTo' | 'traceparent' | 'callId';

/** What an owner learns of an effect: the command without its header. */
export type Report = { [Type in Result]: Omit<CommandOf<Type>, Header> }[Result];

interface Reported {
  effectId: string;
  sessionId: string;
  traceparent: string | null;
}

export interface ReportDeps {
  commands: CommandLog;
  clock: Clock;
  log: Log;
}

/**
 * Tells the owner of a session how an effect ended. The command's id is the effect's: a second delivery of the item brings the same id,
 * which the log's window and the session's seen row refuse, so that every effect has one result.
 *
 * @param leaseLost ends the waiting for a log that takes nothing: another worker may have the item by now
 * @throws the log's last error
 */
export async function reportResult(work: Reported, report: Report, leaseLost: AbortSignal, { commands, clock, log }: ReportDeps): Promise<void> {
  const { effectId, sessionId, traceparent } = work;
  const header = { v: 1 as const, sessionId, commandId: effectId, sentAtMs: clock.nowMs(), answerTo: null, traceparent, callId: effectId };
  const command = { ...header, ...report } satisfies CommandOf<Result>;
  const body = JSON.stringify(command);
  for (let tries = 1; ; tries += 1) {
    try {
      await commands.append(partitionOf(sessionId), effectId, body);
      failPoint('item.reported');
      return;
    } catch (error) {
      if (tries >= MAX_TRIES || leaseLost.aborted) throw error;
      log.warn({ err: error, effect_id: effectId }, 'the result of an effect could not be stored yet');
      await pause(RETRY_MS, undefined, { signal: leaseLost }).catch(() => {}); // no fail point: pauses
    }
  }
}
