import type { ConversationEvent, EventContent } from '#shared/contracts/agent/conversation-event.ts';
import { type AgentState, noAgentState } from '../../engine/agent-state.ts';
import type { EngineDocuments } from '../../engine/engine-documents.ts';
import { saidTextsFor } from '../../engine/likeness/likeness.ts';
import { likeliestRoutine } from '../../engine/policies/candidates.ts';
import { afterReply } from '../../engine/preamble/preamble-due.ts';
import { knownPaths } from '../../engine/routines/routine-machine.ts';
import type { ToolsOf } from '../../engine/tools/turn-tools.ts';
import type { TurnCallName } from '../../engine/turn-calls.ts';
import { currentRows, readTurnRows, type TurnRow } from '../../engine/turn-row.ts';
import type { Plan } from '../plan.ts';
import { turnActor } from './actor.ts';
import { decideNext } from './asked-calls.ts';
import { newerOf } from './moderating-states.ts';
import type { Likely, Opening } from './types.ts';

interface Remembered {
  /** Of the event with whose deletion it is forgotten; -1: nothing is remembered. */
  offset: number;
  state: AgentState;
}

/** The newest agent state of the session, those of this commit included. */
export function agentStateIn({ sessionId, earlier, agentStates, inputs }: Plan): Remembered {
  const own = [...earlier.agentStates, ...agentStates].findLast((row) => row.sessionId === sessionId && row.seq >= 0);
  if (own !== undefined) return { offset: own.offset, state: own.state as AgentState };
  return inputs.engine?.agentStateOf(sessionId) ?? { offset: -1, state: noAgentState };
}

/** All rows of a turn, those of this commit included. */
export function turnRowsIn({ earlier, turnSteps, inputs }: Plan, turnId: string): TurnRow[] {
  const own = [...earlier.turnSteps, ...turnSteps].filter((row) => row.turnId === turnId);
  return [...(inputs.engine?.rowsOf(turnId) ?? []), ...readTurnRows(own.map(({ body }) => body))];
}

/** The conversational routine that a message is most like, for a turn that begins later; undefined: it is like none. */
export function likeliestFor(plan: Plan, bundleHash: string, content: EventContent): string | undefined {
  const documents = plan.inputs.engine?.documentsOf(bundleHash) ?? null;
  return documents === null ? undefined : (likeliestRoutine(documents, [{ ...content, metadata: {} } as ConversationEvent]) ?? undefined);
}

/**
 * How a turn begins, or begins again; undefined: it is one model call.
 * @param awaited of a turn that has waited: its messages were appended by earlier commands
 */
export function openingOf(plan: Plan, awaited?: string): Opening | undefined {
  const { bundleHash } = plan.metadataOf(turnActor) ?? { bundleHash: '' };
  const documents = plan.inputs.engine?.documentsOf(bundleHash) ?? null;
  if (documents === null) return undefined;
  const lists = plan.inputs.engine?.listsOf(bundleHash) ?? {};
  const { evaluationSet: evaluations } = documents;
  const tools = documents.toolServers.size > 0 && { lists: listsFor(documents.toolServers, lists) };
  const events = plan.events.map(({ event }) => event);
  const likeliest = awaited ?? likeliestRoutine(documents, events);
  const { state } = agentStateIn(plan);
  const compares = saidTextsFor(documents, knownPaths(documents.routineModels, state.paths));
  const row: TurnRow = {
    kind: 'began',
    state,
    ...(likeliest !== null && { likeliest }),
    ...(compares.length > 0 && { compares }),
    ...(evaluations !== null && { evaluations }),
    ...tools,
  };
  return { row, decision: decideNext(documents, [row], toolsIn(plan)), search: documents.search };
}

/** Of a replayed turn: the recorded answer to a call, which counts in place of the result's text; null: there is none. */
export function recordedAnswer(plan: Plan, callId: string, kind: TurnCallName): { type: 'read'; answer: unknown } | null {
  const row = plan.inputs.engine?.recordedOf?.(callId) ?? null;
  return row?.kind === kind && 'answer' in row ? { type: 'read', answer: row.answer } : null;
}

/** Tool lists that the batch needs, by hash. */
export function toolsIn({ inputs }: Plan): ToolsOf {
  return (hash) => inputs.engine?.toolsOf(hash) ?? null;
}

function listsFor(servers: ReadonlySet<string>, lists: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(lists).filter(([server]) => servers.has(server)));
}

/** Of the turn in progress, if it has an engine: how it begins anew. */
export function joinedOpening(plan: Plan): Opening | undefined {
  const context = plan.stateOf(turnActor)?.context;
  if (context?.engine === undefined) return undefined;
  return openingOf(plan, newerOf(context.held?.likely, likelyIn(plan))?.routineId);
}

/**
 * The routine that the newest messages are most like which this command has posted, or moderation has passed.
 * @param awaited of messages of earlier commands
 */
export function likelyIn(plan: Plan, awaited?: string): Likely | undefined {
  const { bundleHash } = plan.metadataOf(turnActor) ?? { bundleHash: '' };
  const documents = plan.inputs.engine?.documentsOf(bundleHash) ?? null;
  if (documents === null) return undefined;
  const events = [...plan.changedEvents.map(({ text }) => JSON.parse(text) as ConversationEvent), ...plan.events.map(({ event }) => event)];
  const routineId = likeliestRoutine(documents, events) ?? awaited;
  const offset = events.findLast(({ kind }) => kind === 'user_message')?.offset ?? plan.lastOffset;
  return routineId === undefined ? undefined : { routineId, offset };
}

/** Stores what the agent remembers of a turn that has replied. */
export function remember(plan: Plan, turnId: string): void {
  const { partition, sessionId, lastOffset: offset } = plan;
  const { state: newest } = agentStateIn(plan);
  const resolved = turnRowsIn(plan, turnId).findLast((row) => row.kind === 'resolved');
  const turn = plan.stateOf(turnActor);
  const waited = turn?.context.preamble === undefined ? {} : afterReply(plan.atMs - (turn.startedAtMs ?? plan.atMs), newest);
  const state: AgentState = { ...newest, ...waited, seq: newest.seq + 1, paths: { ...newest.paths, ...resolved?.paths } };
  plan.agentStates.push({ partition, sessionId, seq: state.seq, offset, state });
}

/** The session's mode that tools of a turn have asked for, the last one; null for none. */
export function modeAskedIn(plan: Plan, turnId: string): 'auto' | 'manual' | null {
  return (
    turnRowsIn(plan, turnId)
      .flatMap((row) => (row.kind === 'tool' ? (row.call.control.mode ?? []) : []))
      .at(-1) ?? null
  );
}

/** Of the turn in progress, with the evaluations with which it began. @throws TypeError without a turn, or without policies in its configuration */
export function documentsIn(plan: Plan): EngineDocuments {
  const turn = plan.stateOf(turnActor);
  if (turn === null) throw new TypeError('an effect of no turn');
  const { evaluations } = currentRows(turnRowsIn(plan, turn.context.turnId)).began;
  const documents = plan.inputs.engine?.documentsOf(turn.bundleHash, evaluations ?? null) ?? null;
  if (documents === null) throw new TypeError('a turn has policies, and its configuration none');
  return documents;
}
