import type { SearchPlan } from '../../engine/retrieval/search-plan.ts';
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

/** Nothing of the search follows. */
export function isLastOfSearch(args: Args): boolean {
  return isSearchAwaited(args) && args.event.type === 'search.settled' && args.event.next === null;
}

/** Begins the search of a turn that begins, or begins again. The turn waits for it before its reply alone. */
export const openSearch = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const plan = planIn(event);
  const { engine, turnId } = context;
  if (plan === null || engine === undefined) return;
  const { first: stage, timeoutMs } = plan;
  const id = effectIdOf(turnId, context.callNo + 1);
  const openedAtMs = atMsOf(event);
  // Half of what is left stays for the reply.
  const deadlineAtMs = Math.min(openedAtMs + timeoutMs, openedAtMs + Math.floor((context.deadlineAtMs - openedAtMs) / 2));
  // Without a query of a model there is still time to search.
  const stageDeadlineAtMs = stage === 'rewrite-query' ? openedAtMs + Math.floor((deadlineAtMs - openedAtMs) / 2) : deadlineAtMs;
  enqueue({ type: 'effect', params: { kind: stage, id, deadlineAtMs: stageDeadlineAtMs, staged: engine.stepCount } });
  enqueue({ type: 'timer', params: overdueTimer(id, stageDeadlineAtMs, stage, LOST_AFTER_MS) });
  const stages = stage === 'search' ? {} : { stage, stageOpenedAtMs: openedAtMs, deadlineAtMs };
  const calls = engine.calls + (stage === 'search' ? 0 : 1);
  enqueue.assign({ callNo: context.callNo + 1, engine: { ...engine, calls, search: { callId: id, openedAtMs, ...stages } } });
});

/** Stages what it has brought, and opens what follows. */
export const settleSearch = turnSetup.enqueueActions(({ context, event, enqueue }) => {
  const { engine, turnId } = context;
  const search = engine?.search ?? null;
  if (event.type !== 'search.settled' || engine === undefined || search === null) return;
  const { next: stage, row } = event;
  enqueue({ type: 'stage', params: { seq: engine.stepCount, row } });
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(event.callId) } });
  const settled = { ...engine, stepCount: engine.stepCount + 1, tokens: engine.tokens + event.tokens };
  if (stage === null) {
    enqueue.assign({ engine: { ...settled, search: null } });
    return;
  }
  const id = effectIdOf(turnId, context.callNo + 1);
  const { deadlineAtMs = context.deadlineAtMs } = search;
  enqueue({ type: 'effect', params: { kind: stage, id, deadlineAtMs, staged: settled.stepCount } });
  enqueue({ type: 'timer', params: overdueTimer(id, deadlineAtMs, stage, LOST_AFTER_MS) });
  const calls = engine.calls + (stage === 'embed' ? 1 : 0);
  enqueue.assign({ callNo: context.callNo + 1, engine: { ...settled, calls, search: { ...search, callId: id, stage, stageOpenedAtMs: event.atMs } } });
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
export const beginRetrieving = turnSetup.enqueueActions(({ context, enqueue }) => {
  const { engine } = context;
  if (engine === undefined || engine.status === 'typing' || engine.status === 'retrieving') return;
  enqueue.assign({ ...beginStage(enqueue, context, 'retrieving'), engine: { ...engine, status: 'retrieving' } });
});

function planIn(event: TurnEvent | { input: TurnInput }): Pick<SearchPlan, 'first' | 'timeoutMs'> | null {
  if ('input' in event) return event.input.opening?.search ?? null;
  return 'opening' in event ? (event.opening?.search ?? null) : null;
}

/** XState's first event has the machine's input. */
function atMsOf(event: TurnEvent | { input: TurnInput }): number {
  return 'input' in event ? event.input.atMs : event.atMs;
}
