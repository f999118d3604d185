import { replyEventId } from '#bus/messages/session.ts';
import { effectIdOf } from '../../tool-loop/effect-ids.ts';
import { engineOf, isAwaited, isMalformedAgain } from './engine-states.ts';
import { turnSetup } from './turn-setup.ts';
import type { TurnActions, TurnContext, TurnEvent, Unchecked } from './types.ts';

/** A reply waits so long for its check; the turn's own deadline may be nearer. */
const CHECK_TIMEOUT_MS = 20_000;

type Args = { context: TurnContext; event: TurnEvent };

/** The awaited reply, which has to be checked before it is sent. */
export function isToBeChecked({ context, event }: Args): boolean {
  return event.type === 'call.replied' && event.check !== undefined && event.callId === effectIdOf(context.turnId, context.callNo);
}

/** Stages the reply, and opens its check. */
export const beginCheck = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  if (event.type !== 'call.replied' || event.check === undefined) throw new TypeError('a reply is checked without a request');
  const { draft, request } = event.check;
  const { turnId, callNo } = context;
  const { isToCheck: _, ...engine } = engineOf(context);
  const id = effectIdOf(turnId, callNo + 1);
  const stepCount = engine.stepCount + 1;
  enqueue({ type: 'stage', params: { seq: engine.stepCount, row: draft } });
  const deadlineAtMs = Math.min(context.deadlineAtMs, event.atMs + CHECK_TIMEOUT_MS);
  enqueue({ type: 'effect', params: { kind: 'turn-step', id, deadlineAtMs, staged: stepCount, request } });
  const pending = [{ callId: id, key: request.key, malformed: 0, openedAtMs: event.atMs }];
  enqueue.assign({ callNo: callNo + 1, engine: { ...engine, stepCount, pending, calls: engine.calls + 1, tokens: engine.tokens + draft.tokens } });
});

/** The check is over, and the reply is sent. */
export function isSent(args: Args): boolean {
  const { event } = args;
  return isAwaited(args) && (event.type !== 'step.malformed' || isMalformedAgain(args)) && outcomeOf(event)?.draft != null;
}

/** The check is over, and another reply is composed. */
export function isMissed(args: Args): boolean {
  return args.event.type === 'check.settled' && isAwaited(args);
}

/** At the turn's deadline the reply is sent as it is. */
export function isDue({ context, event }: Args): boolean {
  return event.type === 'turn.deadline' && event.turnId === context.turnId && event.unchecked?.draft != null;
}

/** Stages the outcome of the check. */
export const settleCheck = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const engine = engineOf(context);
  const outcome = outcomeOf(event);
  if (outcome === null) return;
  enqueue({ type: 'stage', params: { seq: engine.stepCount, row: outcome.row } });
  // Those of an answer that can't be read are counted with its row.
  const tokens = event.type === 'check.settled' ? event.tokens : 0;
  if (event.type === 'turn.deadline') for (const { callId } of engine.pending) enqueue({ type: 'supersede', params: { id: callId } });
  enqueue.assign({ engine: { ...engine, stepCount: engine.stepCount + 1, tokens: engine.tokens + tokens, pending: [] } });
});

/** The message under the id of the call that brought it. */
export function draftMessage({ event }: { event: TurnEvent }): TurnActions['fact'] {
  const draft = outcomeOf(event)?.draft ?? null;
  if (draft === null) throw new TypeError('a check without a reply');
  const { callId, text, model, provider } = draft;
  return { content: { kind: 'assistant_message', text }, id: replyEventId(callId), metadata: { model, provider } };
}

/** What an event says about the reply; null: nothing. */
function outcomeOf(event: TurnEvent): Unchecked | null {
  if (event.type === 'check.settled') return event;
  return event.type === 'step.malformed' || event.type === 'turn.deadline' ? (event.unchecked ?? null) : null;
}
