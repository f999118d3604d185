import type { SearchRequest } from '../../engine/retrieval/next-search.ts';
import { effectIdOf, overdueKeyOf } from '../../tool-loop/effect-ids.ts';
import { overdueTimer } from '../../tool-loop/overdue-timer.ts';
import { statusFact } from '../../tool-loop/status-fact.ts';
import { turnSetup } from './turn-setup.ts';
import type { TurnActions, TurnContext, TurnEvent, TurnInput } from './types.ts';

/** A reply waits for a search, so a lost one is not waited for as long as a lost tool call. */
const LOST_AFTER_MS = 1_000;

type Args = { context: TurnContext; event: TurnEvent };

export function awaitsSearch({ context }: { context: TurnContext }): boolean {
  return (context.engine?.search ?? null) !== null;
}

export function isSearchAwaited({ context, event }: Args): boolean {
  return event.type === 'search.settled' && context.engine?.search?.callId === event.callId;
}

export function isSearchOver({ context, event }: Args): boolean {
  return isSearchAwaited({ context, event }) && event.type === 'search.settled' && event.next === null;
}

/** Begins the retrieval of a turn that begins, or begins again, and goes on with it after a step. The turn waits for it before its reply alone. */
export const openSearch = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const request = requestIn(event);
  const { engine, turnId } = context;
  if (request === null || engine === undefined) return;
  const id = effectIdOf(turnId, context.callNo + 1);
  const openedAtMs = atMsOf(event);
  // Half of what is left stays for the reply.
  const deadlineAtMs = Math.min(openedAtMs + request.timeoutMs, openedAtMs + Math.floor((context.deadlineAtMs - openedAtMs) / 2));
  const common = { id, deadlineAtMs, staged: engine.stepCount };
  if (request.type === 'rewrite') enqueue({ type: 'effect', params: { kind: 'turn-step', ...common, request: request.call } });
  else {
    enqueue({ type: 'effect', params: { kind: 'search', ...common } });
    enqueue({ type: 'timer', params: overdueTimer(id, deadlineAtMs, 'search', LOST_AFTER_MS) });
  }
  enqueue.assign({ callNo: context.callNo + 1, engine: { ...engine, search: { callId: id, openedAtMs } } });
});

/** Stages what a step has brought. */
export const settleSearch = turnSetup.enqueueActions(({ context: { engine }, event, enqueue }) => {
  if (event.type !== 'search.settled' || engine === undefined) return;
  enqueue({ type: 'stage', params: { seq: engine.stepCount, row: event.row } });
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(event.callId) } });
  enqueue.assign({ engine: { ...engine, stepCount: engine.stepCount + 1, tokens: engine.tokens + event.tokens, search: null } });
});

/** Nothing waits for it any more. */
export const endSearch = turnSetup.enqueueActions(({ context: { engine }, enqueue }) => {
  const search = engine?.search ?? null;
  if (engine === undefined || search === null) return;
  enqueue({ type: 'supersede', params: { id: search.callId } });
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(search.callId) } });
  enqueue.assign({ engine: { ...engine, search: null } });
});

export const retrieving: { type: 'fact'; params: TurnActions['fact'] } = { type: 'fact', params: statusFact('processing', { stage: 'retrieving' }) };

function requestIn(event: TurnEvent | { input: TurnInput }): SearchRequest | null {
  if ('input' in event) return event.input.opening?.search ?? null;
  if (event.type === 'message.joined') return event.opening?.search ?? null;
  return event.type === 'search.settled' ? event.next : null;
}

/** XState's first event has the machine's input. */
function atMsOf(event: TurnEvent | { input: TurnInput }): number {
  return 'input' in event ? event.input.atMs : event.atMs;
}
