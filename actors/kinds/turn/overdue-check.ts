import { actorFields } from '#bus/messages/actor-fields.ts';
import { overdueKeyOf } from '../../tool-loop/effect-ids.ts';

/** A worker reports its own timeout at the deadline. */
const GRACE_MS = 5_000;

/** The timer that ends a check whose item is lost, so that its effect does not stay open for ever. It is derived from the effect, and has no row. */
export function overdueCheckTimer(callId: string, turnId: string, deadlineAtMs: number) {
  const failure = { code: 'router.timeout', message: 'there was no result in time', details: {} };
  return { key: overdueKeyOf(callId), atMs: deadlineAtMs + GRACE_MS, command: { type: 'call.failed' as const, ...actorFields(turnId), callId, failure } };
}
