import { statusFact } from '../../tool-loop/status-fact.ts';
import { turnSetup } from './turn-setup.ts';
import type { HeldStatus, PreambleContext, TurnActions, TurnContext, TurnEvent } from './types.ts';

/** From the turn's start. Later it would come with the reply. */
const WITHIN_MS = 1_500;

type Enqueue = (
  action:
    | { type: 'fact'; params: TurnActions['fact'] }
    | { type: 'supersede'; params: TurnActions['supersede'] }
    | { type: 'effect'; params: Extract<TurnActions['effect'], { kind: 'preamble' }> },
) => void;

interface Start {
  turnId: string;
  atMs: number;
  preamble?: { isDue: boolean } | undefined;
  held?: object | undefined;
}

/** Context of a turn that begins so. */
export function preambleAtStart({ turnId, atMs, preamble, held }: Start): PreambleContext | undefined {
  if (preamble === undefined) return undefined;
  const { isDue } = preamble;
  if (isDue && held !== undefined) return { untilAtMs: atMs + WITHIN_MS, callId: null, calls: 0, held: null, isPostponed: true };
  return { untilAtMs: atMs + WITHIN_MS, callId: isDue ? idOf(turnId, 1) : null, calls: isDue ? 1 : 0, held: null };
}

function idOf(turnId: string, call: number): string {
  return `${turnId}-preamble-${call}`;
}

/** Makes the call for it, beside what the turn does next. */
export const openPreamble = turnSetup.enqueueActions(({ context: { preamble }, enqueue }) => {
  if (!isAwaited(preamble)) return;
  enqueue({ type: 'effect', params: { kind: 'preamble', id: preamble.callId, deadlineAtMs: preamble.untilAtMs } });
});

/** Of the turn's next stage: waits for a preamble that may still come. One that the turn has passed by now comes too late. */
export function beginStage(enqueue: Enqueue, { preamble }: TurnContext, status: HeldStatus): { preamble?: PreambleContext } {
  if (isAwaited(preamble) && preamble.held === null) return { preamble: { ...preamble, held: status } };
  const after = endPreamble(enqueue, preamble);
  enqueue({ type: 'fact', params: factOf(status) });
  return after;
}

/** Before another event of the turn: appends the status that waits, and ends the call. */
export function endPreamble(enqueue: Enqueue, preamble: PreambleContext | undefined): { preamble?: PreambleContext } {
  if (!isAwaited(preamble)) return {};
  enqueue({ type: 'supersede', params: { id: preamble.callId } });
  if (preamble.held !== null) enqueue({ type: 'fact', params: factOf(preamble.held) });
  return { preamble: { ...preamble, callId: null, held: null } };
}

/** Of a turn without an engine. */
export const beginShortTyping = turnSetup.enqueueActions(({ context, enqueue }) => enqueue.assign(beginStage(enqueue, context, 'typing')));

/** The reply is ready first. */
export const passPreamble = turnSetup.enqueueActions(({ context, enqueue }) => enqueue.assign(endPreamble(enqueue, context.preamble)));

/** The turn ends, and the status that waits is not needed. */
export const dropPreamble = turnSetup.enqueueActions(({ context: { preamble }, enqueue }) => {
  if (isAwaited(preamble)) enqueue({ type: 'supersede', params: { id: preamble.callId } });
});

/** A message joins: the line would acknowledge only those before it. */
export const renewPreamble = turnSetup.enqueueActions(({ context: { turnId, preamble }, event, enqueue }) => {
  if (!isAwaited(preamble)) return;
  enqueue({ type: 'supersede', params: { id: preamble.callId } });
  const callId = idOf(turnId, preamble.calls + 1);
  // Past its time it fails at once, and what waits for it goes on.
  enqueue({ type: 'effect', params: { kind: 'preamble', id: callId, deadlineAtMs: Math.max(preamble.untilAtMs, event.atMs) } });
  enqueue.assign({ preamble: { ...preamble, callId, calls: preamble.calls + 1 } });
});

/** The turn waits for moderation: a call that has not come yet is made later. */
export function postponePreamble(enqueue: Enqueue, preamble: PreambleContext | undefined): { preamble?: PreambleContext } {
  if (!isAwaited(preamble)) return {};
  enqueue({ type: 'supersede', params: { id: preamble.callId } });
  return { preamble: { ...preamble, callId: null, isPostponed: true } };
}

/** Makes the call that was postponed. Past its time it fails at once, and what waits for it goes on. */
export function resumePreamble(enqueue: Enqueue, { turnId, preamble }: TurnContext, atMs: number): { preamble?: PreambleContext } {
  if (preamble?.isPostponed !== true) return {};
  const { isPostponed: _, ...resumed } = preamble;
  const callId = idOf(turnId, preamble.calls + 1);
  enqueue({ type: 'effect', params: { kind: 'preamble', id: callId, deadlineAtMs: Math.max(preamble.untilAtMs, atMs) } });
  return { preamble: { ...resumed, callId, calls: preamble.calls + 1 } };
}

/** By the owner's clock, whatever the worker's says. */
export const takePreamble = turnSetup.enqueueActions(({ context: { preamble }, event, enqueue }) => {
  if (event.type !== 'preamble.settled' || !isAwaited(preamble)) return;
  const isShown = event.text !== null && event.atMs <= preamble.untilAtMs;
  if (event.text !== null && isShown) {
    enqueue({ type: 'fact', params: { content: { kind: 'preamble', text: event.text }, id: null, metadata: {} } });
    enqueue({ type: 'rememberPreamble', params: { text: event.text } });
  }
  if (preamble.held !== null) enqueue({ type: 'fact', params: factOf(preamble.held) });
  enqueue.assign({ preamble: { ...preamble, callId: null, held: null, ...(isShown && { shownAtMs: event.atMs }) } });
});

export function isPreamble({ context: { preamble }, event }: { context: TurnContext; event: TurnEvent }): boolean {
  return event.type === 'preamble.settled' && isAwaited(preamble) && event.callId === preamble.callId;
}

function isAwaited(preamble: PreambleContext | undefined): preamble is PreambleContext & { callId: string } {
  return preamble !== undefined && preamble.callId !== null;
}

function factOf(status: HeldStatus): TurnActions['fact'] {
  return status === 'typing' ? statusFact('typing') : statusFact('processing', { stage: status });
}
