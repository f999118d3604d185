import { afterPreamble, isPreambleDue } from '../../engine/preamble/preamble-due.ts';
import { isSameLine, writePreamble } from '../../engine/preamble/write-preamble.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { agentStateIn } from './turn-memory.ts';
import type { TurnInput, TurnScope } from './types.ts';

/** Of a turn that begins; undefined: its agent has no preambles. */
export function preambleFor(plan: Plan): TurnInput['preamble'] {
  const hash = plan.metadataOf(turnActor)?.bundleHash ?? '';
  return plan.inputs.engine?.hasPreambles(hash) === true ? { isDue: isPreambleDue(agentStateIn(plan).state) } : undefined;
}

/** A failed call, a line that may not be shown, and one that was used before leave no preamble. */
export function preambleOf(plan: Plan, command: Parameters<TurnScope['preambleOf']>[0]): ReturnType<TurnScope['preambleOf']> {
  const { callId } = command;
  if (plan.stateOf(turnActor)?.context.preamble?.callId !== callId) return null;
  const read = command.type === 'call.completed' ? writePreamble.read(command, []) : null;
  const isNew = read?.type === 'read' && !agentStateIn(plan).state.preambles.some((earlier) => isSameLine(earlier, read.answer));
  return { type: 'preamble.settled', callId, text: isNew ? read.answer : null };
}

/** At the preamble's event, and gone with it. Also a turn that is cancelled has said it. */
export function rememberPreamble(plan: Plan, text: string): void {
  const { partition, sessionId, lastOffset: offset } = plan;
  const { state: newest } = agentStateIn(plan);
  const state = { ...newest, ...afterPreamble(text, newest), seq: newest.seq + 1 };
  plan.agentStates.push({ partition, sessionId, seq: state.seq, offset, state });
}
