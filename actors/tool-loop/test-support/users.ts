import type { AnyEventObject, AnyStateMachine } from 'xstate';
import { runMachine } from '../../kinds/run/machine.ts';
import type { RunInput, RunReply } from '../../kinds/run/types.ts';
import { turnMachine } from '../../kinds/turn/machine.ts';
import type { ComposedReply } from '../../kinds/turn/steps/compose-reply.ts';
import type { LoopReply } from '../types.ts';
import { conversation } from './conversation.ts';

/** A machine that uses the loop, with what differs between them. */
export interface LoopMachine {
  name: string;
  machine: AnyStateMachine;
  actorId: string;
  inputOf(given: { maxIterations: number; servers: readonly string[] }): object;
  /** Its name of the state that asks. */
  asking: string;
  /** A reply as it reads it; null for one that it never reads. */
  replyOf(meaning: LoopReply): RunReply | ComposedReply | LoopReply | null;
  deadline: AnyEventObject;
}

const run: LoopMachine = {
  name: 'run',
  machine: runMachine,
  actorId: 'run_1',
  inputOf: (given): RunInput => ({
    ...{ runId: 'run_1', atMs: 1_000, deadlineAtMs: 121_000, timeoutMs: 120_000, hasFallbackModel: false, refusal: null },
    ...given,
  }),
  asking: 'thinking',
  replyOf: (meaning): RunReply => {
    if (meaning.type === 'end') return { type: 'output', output: { done: true } };
    return meaning.type === 'again' ? { type: 'text', messages: [...meaning.messages] } : meaning;
  },
  deadline: { type: 'run.deadline', actorId: 'run_1' },
};

const turn: LoopMachine = {
  name: 'turn',
  machine: turnMachine,
  actorId: 'trn_1',
  inputOf: () => ({ turnId: 'trn_1', atMs: 1_000, timeoutMs: 120_000 }),
  asking: 'composing',
  replyOf: (meaning): ComposedReply | null => {
    if (meaning.type === 'end') return { type: 'message', text: 'Two years.', model: 'scripted/assistant', provider: 'Scripted' };
    return meaning.type === 'unusable' ? meaning : null;
  },
  deadline: { type: 'turn.deadline', turnId: 'trn_1' },
};

const conversationMachine: LoopMachine = {
  name: 'conversation',
  machine: conversation,
  actorId: 'con_1',
  inputOf: (given) => given,
  asking: 'asking',
  replyOf: (meaning) => meaning,
  deadline: { type: 'expired' },
};

export const usersWithTools: readonly LoopMachine[] = [run, conversationMachine];
export const loopUsers: readonly LoopMachine[] = [turn, ...usersWithTools];
export const joined: Readonly<Record<string, AnyEventObject>> = { turn: { type: 'message.joined' }, conversation: { type: 'joined' } };
