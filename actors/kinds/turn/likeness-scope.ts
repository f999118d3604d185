import { compare } from '../../engine/likeness/likeness.ts';
import { currentRows, type RowOf } from '../../engine/turn-row.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { decideNext } from './asked-calls.ts';
import { documentsIn, toolsIn, turnRowsIn } from './turn-memory.ts';
import type { SearchCommand, StepSettled } from './types.ts';

/** What the awaited vectors of what was said have shown; null for any other call. Without them shared words decide, and the turn goes on. */
export function likenessOf(plan: Plan, command: SearchCommand): StepSettled | null {
  const turn = plan.stateOf(turnActor);
  const { callId } = command;
  const call = turn?.context.engine?.pending.find((one) => one.callId === callId);
  if (turn === null || call?.isForLikeness !== true) return null;
  const { turnId, engine } = turn.context;
  const documents = documentsIn(plan);
  const rows = turnRowsIn(plan, turnId);
  const recorded = plan.inputs.engine?.recordedOf?.(callId) ?? null;
  const common = { kind: 'likeness' as const, key: call.key, ms: Math.max(0, plan.atMs - call.openedAtMs), tokens: tokensOf(command) };
  const rowOf = (): RowOf<'likeness'> => {
    if (command.type !== 'call.completed') return { ...common, model: null, failure: 'unavailable' };
    const { model, vectors = [] } = command;
    const found = compare(documents, currentRows(rows).began.compares ?? [], vectors);
    return found === null ? { ...common, model, failure: 'malformed' } : { ...common, model, ...found, failure: null };
  };
  const row = recorded?.kind === 'likeness' ? recorded : rowOf();
  const used = { calls: engine?.calls ?? 0, tokens: (engine?.tokens ?? 0) + common.tokens };
  return { type: 'step.settled', callId, row, tokens: common.tokens, next: decideNext(documents, [...rows, row], toolsIn(plan), used) };
}

function tokensOf(command: SearchCommand): number {
  const usage = command.type === 'call.completed' ? command.usage : null;
  return usage === null ? 0 : usage.promptTokens + usage.completionTokens;
}
