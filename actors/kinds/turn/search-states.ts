import { effectIdOf, overdueKeyOf } from '../../tool-loop/effect-ids.ts';
import { overdueTimer } from '../../tool-loop/overdue-timer.ts';
import { beginStage } from './preamble-states.ts';
import { turnSetup } from './turn-setup.ts';
import type { TurnContext, TurnEvent, TurnInput } from './types.ts';

/** A reply waits for a search, so a lost one is not waited for as long as a lost tool call. */
const LOST_AFTER_MS = 1_000;

type Args = { context: TurnContext; event: TurnEvent };

export function awaitsSearch({ context }: { context: TurnContext }): boolean {
  return (context.engine?.search ?? null) !== null;
}

export function isSearchAwaited({ context, event }: Args): boolean {
  return event.type === 'search.settled' && context.engine?.search?.callId === event.callId;
}

/** Begins the search of a turn that begins, or begins again. The turn waits for it before its reply alone. */
export const openSearch = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const timeoutMs = timeoutIn(event);
  const { engine, turnId } = context;
  if (timeoutMs === null || engine === undefined) return;
  const id = effectIdOf(turnId, context.callNo + 1);
  const openedAtMs = atMsOf(event);
  // Half of what is left stays for the reply.
  const deadlineAtMs = Math.min(openedAtMs + timeoutMs, openedAtMs + Math.floor((context.deadlineAtMs - openedAtMs) / 2));
  enqueue({ type: 'effect', params: { kind: 'search', id, deadlineAtMs } });
  enqueue({ type: 'timer', params: overdueTimer(id, deadlineAtMs, 'search', LOST_AFTER_MS) });
  enqueue.assign({ callNo: context.callNo + 1, engine: { ...engine, search: { callId: id, openedAtMs } } });
});

/** Stages what it has brought. */
export const settleSearch = turnSetup.enqueueActions(({ context: { engine }, event, enqueue }) => {
  if (event.type !== 'search.settled' || engine === undefined) return;
  enqueue({ type: 'stage', params: { seq: engine.stepCount, row: event.row } });
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(event.callId) } });
  enqueue.assign({ engine: { ...engine, stepCount: engine.stepCount + 1, search: null } });
});

/** Nothing waits for it any more. */
export const endSearch = turnSetup.enqueueActions(({ context: { engine }, enqueue }) => {
  const search = engine?.search ?? null;
  if (engine === undefined || search === null) return;
  enqueue({ type: 'supersede', params: { id: search.callId } });
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(search.callId) } });
  enqueue.assign({ engine: { ...engine, search: null } });
});

/** All is decided but what the reply is to use. */
export const beginRetrieving = turnSetup.enqueueActions(({ context, enqueue }) => enqueue.assign(beginStage(enqueue, context, 'retrieving')));

function timeoutIn(event: TurnEvent | { input: TurnInput }): number | null {
  if ('input' in event) return event.input.opening?.searchTimeoutMs ?? null;
  return event.type === 'message.joined' ? (event.opening?.searchTimeoutMs ?? null) : null;
}

/** XState's first event has the machine's input. */
function atMsOf(event: TurnEvent | { input: TurnInput }): number {
  return 'input' in event ? event.input.atMs : event.atMs;
}
