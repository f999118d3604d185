import { setTimeout as pause } from 'node:timers/promises';
import type { CommandLog } from '#bus/bus.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** Long retries: the result may be of a call that must not happen twice. */
const RETRY_MS = 500;
const MAX_TRIES = 60;

type Result = 'tool.completed' | 'tools.listed' | 'delivery.reported';
type Header = 'v' | 'sessionId' | 'commandId' | 'sentAtMs' | 'answerTo' | 'traceparent' | 'callId';

/** A result command without its header. */
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
 * Appends a result to the command log. Its command id is the effect's: the log's dedupe window and the session's processed commands
 * refuse the result of a redelivered item.
 *
 * @param leaseLost ends the retries: another worker may have the item by now
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
