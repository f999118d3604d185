import type { CommandOf } from '#bus/messages/session.ts';
import type { Clock } from '#shared/clock.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { CommandReplies } from '../command-replies.ts';
import { limits, type Waits } from '../limits.ts';
import type { CustomerRows } from './customer-rows.ts';

export interface DeleteSessionDeps {
  commandReplies: Pick<CommandReplies, 'gatewayId' | 'send'>;
  clock: Clock;
  waits: Pick<Waits, 'replyMs'>;
}

export interface DeleteSessionsDeps extends DeleteSessionDeps {
  customerRows: Pick<CustomerRows, 'sessionsOf'>;
  waits: Pick<Waits, 'replyMs' | 'cascadeMs'>;
}

/**
 * Has all sessions of a customer deleted by their owners, turns in progress cancelled. May be repeated: deleted sessions stay deleted.
 * @throws `service.no_answer` when some are left after `waits.cascadeMs`
 */
export async function deleteSessionsOf(deps: DeleteSessionsDeps, customerId: string, traceparent: string) {
  const { customerRows, waits } = deps;
  const endsAtMs = performance.now() + waits.cascadeMs;
  for (;;) {
    const sessionIds = await customerRows.sessionsOf(customerId, limits.sessionsPerCascadeStep);
    if (sessionIds.length === 0) return;
    if (performance.now() > endsAtMs) throw notInTime();
    const settled = await Promise.allSettled(sessionIds.map((sessionId) => deleteSession(deps, sessionId, traceparent)));
    for (const one of settled) if (one.status === 'rejected') throw one.reason;
  }
}

/** One session, by its owner. One that another request has deleted meanwhile is no failure. @throws `service.no_answer` */
export async function deleteSession({ commandReplies, clock, waits }: DeleteSessionDeps, sessionId: string, traceparent: string): Promise<void> {
  const command: CommandOf<'session.delete'> = {
    v: 1,
    type: 'session.delete',
    sessionId,
    commandId: `${sessionId}-delete-${ulid()}`,
    sentAtMs: clock.nowMs(),
    answerTo: commandReplies.gatewayId,
    traceparent,
  };
  const outcome = await commandReplies.send(command, waits.replyMs);
  if (outcome === null) throw new SwitchyardError('service.no_answer', 'the session could not be deleted in time; send the request again');
  if (!outcome.reply.ok && outcome.reply.code !== 'session.not_found') throw new SwitchyardError(outcome.reply.code, outcome.reply.message);
}

function notInTime(): SwitchyardError {
  return new SwitchyardError('service.no_answer', 'not all sessions of the customer could be deleted in time; send the request again');
}
