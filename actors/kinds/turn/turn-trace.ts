import { contextBelow } from '#shared/telemetry/trace-context.ts';
import type { SpanEvent } from '#shared/telemetry/tracing.ts';
import { planDetails, turnDetails } from '../../engine/plan-trace.ts';
import type { EndedWork } from '../../runtime/apply/commit-rows.ts';
import type { ActorState } from '../actor-kind.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { turnRowsIn } from './turn-memory.ts';
import type { EngineContext, TurnContext } from './types.ts';

/** For an effect of a turn: its questions are below the planning that they belong to, all else is below the turn. */
export function contextFor(kind: string, { turnId, engine }: TurnContext, traceparent: string | null): string | null {
  const ofTurn = contextBelow(traceparent, turnId);
  const planning = kind === 'turn-step' ? engine?.planning : undefined;
  return planning === undefined ? ofTurn : contextBelow(ofTurn, idOf(turnId, planning));
}

/** Notes the end of a planning: nothing is missing any more, tools are called, all begins anew, or the turn ends. */
export function endPlanning(
  plan: Plan,
  before: ActorState | null,
  { context: { turnId, engine }, isDone, outcome }: { context: TurnContext; isDone: boolean; outcome: string },
): void {
  const planning = (before?.context as TurnContext | undefined)?.engine?.planning;
  if (planning === undefined || (!isDone && planning.from === engine?.planning?.from)) return;
  const turn = plan.stateOf(turnActor);
  if (turn === null) return;
  const { bundleHash, traceparent: parent } = turn;
  const rows = turnRowsIn(plan, turnId);
  const { atMs } = plan;
  // A planning that another takes the place of has been cut short by a message.
  const cut = engine?.planning === undefined ? 'completed' : 'cancelled';
  plan.noteEnd({
    kind: 'plan',
    id: idOf(turnId, planning),
    partOf: turnId,
    routineId: null,
    bundleHash,
    parent,
    startedAtMs: planning.atMs,
    outcome: isDone && engine?.planning !== undefined ? outcome : cut,
    // Rows that can't be read are those of a turn whose configuration is lost.
    ...(rows.length > 0 && { details: (content) => planDetails(rows, planning.from, atMs, content) }),
  });
}

/** Of a whole turn, at its end. */
export function detailsOf(plan: Plan, { turnId, preamble, engine }: TurnContext): Pick<EndedWork, 'details'> {
  const isReplied = plan.events.some(({ event }) => event.kind === 'assistant_message' && event.source === 'ai_agent');
  const { atMs } = plan;
  const shownAtMs = preamble?.shownAtMs;
  const rows = engine === undefined ? [] : turnRowsIn(plan, turnId);
  return { details: () => ({ attributes: turnDetails(rows), events: eventsOf(shownAtMs, isReplied ? atMs : undefined) }) };
}

/** `ttfm`: the first message that the customer gets, which a preamble is, too. */
function eventsOf(preambleAtMs: number | undefined, replyAtMs: number | undefined): SpanEvent[] {
  const firstAtMs = preambleAtMs ?? replyAtMs;
  return [
    ...(preambleAtMs === undefined ? [] : [{ name: 'preamble.emitted', atMs: preambleAtMs }]),
    ...(firstAtMs === undefined ? [] : [{ name: 'ttfm', atMs: firstAtMs }]),
  ];
}

function idOf(turnId: string, { from }: NonNullable<EngineContext['planning']>): string {
  return `${turnId}#plan-${from}`;
}
