import { setTimeout as after } from 'node:timers/promises';
import type { CommandLog } from '#bus/bus.ts';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import type { Clock } from '#shared/clock.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { failPoint } from '#shared/fail-points.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { CallResult } from './call/execute-call.ts';

/** A result cost a model call, so retrying pays. */
const RETRY_MS = 500;
/** Then the item is nacked and the call executed again. */
const MAX_TRIES = 60;

export interface ReportDeps {
  commands: CommandLog;
  clock: Clock;
  log: Log;
}

/**
 * Appends an actor's result to the command log. The command's id is the call's: the dedupe window and the session's processed commands refuse a second one, so
 * a turn gets one result however often its call was executed.
 *
 * @param isLeaseLost ends the retries, since another worker may have the call
 * @throws the log's last error
 */
export async function reportResult(
  call: RouterCall,
  reply: NonNullable<RouterCall['reply']>,
  result: CallResult,
  isLeaseLost: () => boolean,
  deps: ReportDeps,
): Promise<void> {
  const partition = partitionOf(reply.sessionId);
  let body = JSON.stringify(commandOf(call, reply, result, deps.clock));
  for (let tries = 1; ; tries += 1) {
    try {
      await deps.commands.append(partition, call.callId, body);
      failPoint('call.reported');
      return;
    } catch (error) {
      if (tries >= MAX_TRIES || isLeaseLost()) throw error;
      const failure = failureOf(error);
      if (failure.code === 'bus.body_too_large') body = JSON.stringify(commandOf(call, reply, { type: 'failed', failure }, deps.clock));
      deps.log.warn({ err: error, call_id: call.callId }, 'the result of a router call could not be stored yet');
      await after(RETRY_MS); // no fail point: pauses
    }
  }
}

function commandOf({ callId, traceparent }: RouterCall, { sessionId, actorId }: NonNullable<RouterCall['reply']>, result: CallResult, clock: Clock) {
  const header = { v: 1 as const, sessionId, commandId: callId, sentAtMs: clock.nowMs(), answerTo: null, traceparent, ...actorFields(actorId), callId };
  if (result.type === 'failed') return { type: 'call.failed', failure: result.failure, ...header } satisfies CommandOf<'call.failed'>;
  const { text, toolCalls, model, provider, finishReason, usage } = result;
  return { type: 'call.completed', text, toolCalls, model, provider, finishReason, usage, ...header } satisfies CommandOf<'call.completed'>;
}
