import type { SaidText } from '../../engine/likeness/said-text.ts';
import { effectIdOf } from '../../tool-loop/effect-ids.ts';
import { overdueTimer } from '../../tool-loop/overdue-timer.ts';
import type { TurnActions, TurnContext } from './types.ts';

/** All else of the turn waits for it, and shared words are there at once. */
const LIKENESS_TIMEOUT_MS = 2_000;
/** A worker's own report of a late call comes before the timer. */
const LOST_AFTER_MS = 250;

type Enqueue = (action: { type: 'effect'; params: TurnActions['effect'] } | { type: 'timer'; params: TurnActions['timer'] }) => void;

/** Opens the call for vectors of what was said. It is waited for as long as stated, and never for more than an eighth of what the turn has left. */
export function openLikeness(enqueue: Enqueue, context: TurnContext, texts: readonly SaidText[], atMs: number): Partial<TurnContext> {
  const { engine, turnId, callNo, deadlineAtMs } = context;
  if (engine === undefined) throw new TypeError('vectors for a turn without an engine');
  const { next: _, ...rest } = engine;
  const id = effectIdOf(turnId, callNo + 1);
  const untilAtMs = atMs + Math.min(LIKENESS_TIMEOUT_MS, Math.max(0, Math.floor((deadlineAtMs - atMs) / 8)));
  const graceMs = Math.min(LOST_AFTER_MS, untilAtMs - atMs);
  enqueue({ type: 'effect', params: { kind: 'embed-messages', id, deadlineAtMs: untilAtMs - graceMs, texts } });
  enqueue({ type: 'timer', params: overdueTimer(id, untilAtMs - graceMs, 'embed-messages', graceMs) });
  const pending = [{ callId: id, key: 'likeness', malformed: 0, openedAtMs: atMs, isForLikeness: true as const }];
  return { callNo: callNo + 1, engine: { ...rest, pending, calls: engine.calls + 1 } };
}
