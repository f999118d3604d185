import type { EffectRow } from '#actors/effects/effect-row.ts';
import { type AgentState, noAgentState } from '#actors/engine/agent-state.ts';
import type { EngineDocuments } from '#actors/engine/engine-documents.ts';
import { readTurnRows, type TurnRow } from '#actors/engine/turn-row.ts';
import type { ActorInputs } from '#actors/inputs/actor-inputs.ts';
import { actorKinds } from '#actors/kinds/registry.ts';
import { applyCommand } from '#actors/runtime/apply/apply-command.ts';
import { CommitPlan } from '#actors/runtime/apply/commit-plan.ts';
import type { SessionState } from '#actors/runtime/apply/session-state.ts';
import type { StagedRow } from '#actors/store/port/turn-store.ts';
import { type CommandOf, checkedEventOf, type SessionCommand } from '#bus/messages/session.ts';
import type { ListedTool } from '#bus/messages/tool.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';

const SESSION_ID = 'ses_in_memory';
const PARTITION = 1;
/** Messages of one turn are posted at the same time. */
const COALESCE_MS = 150;
const TURN_TIMEOUT_MS = 180_000;
const ID_CHARACTERS = 26;
const TRACE_ID_DIGITS = 32;

/** Tool lists, as if servers had been listed. */
export interface ToolLists {
  /** Hash of its list, by server. */
  hashes: Readonly<Record<string, string>>;
  toolsOf(hash: string): readonly ListedTool[] | null;
}

interface SessionBundle {
  hash: string;
  greeting: string | null;
  /** Null: turns are one model call. */
  documents: EngineDocuments | null;
  tools: ToolLists;
}

/** What a fork goes on from. */
export interface SessionPast {
  /** In order; the next event has the offset behind the last one's. */
  events: readonly ConversationEvent[];
  agentState: AgentState;
}

/**
 * One session, applied by the actors of the product, with its rows in memory. The caller makes the effects that it opens. Ids are counted, so equal commands
 * give equal rows.
 */
export class SessionInMemory {
  readonly log: ConversationEvent[];
  /** Opened and not closed, in order. */
  readonly open = new Map<string, EffectRow>();
  /** In place of a call's result, by its id. */
  readonly recorded = new Map<string, TurnRow>();
  /** Of the turns that begin from now on. */
  documents: EngineDocuments | null;
  agentState: AgentState;
  readonly #bundle: SessionBundle;
  readonly #rows = new Map<string, StagedRow[]>();
  #state: SessionState | null = null;
  #ids = 0;

  /** @param past null: it begins with the greeting, if there is one */
  constructor(bundle: SessionBundle, past: SessionPast | null, atMs: number) {
    this.#bundle = bundle;
    this.documents = bundle.documents;
    this.log = [...(past?.events ?? [])];
    this.agentState = past?.agentState ?? noAgentState;
    this.apply(creation(bundle.hash, past === null, atMs), atMs);
    const last = past?.events.at(-1);
    if (this.#state !== null && last !== undefined) this.#state = { ...this.#state, head: last.offset + 1 };
  }

  /** Of all turns, in order. */
  get turnIds(): string[] {
    return [...this.#rows.keys()];
  }

  /** Empty for a turn that is one model call. */
  rowsOf(turnId: string): TurnRow[] {
    return readTurnRows(this.stagedOf(turnId).map(({ body }) => body));
  }

  stagedOf(turnId: string): readonly StagedRow[] {
    return this.#rows.get(turnId) ?? [];
  }

  newId(): string {
    this.#ids += 1;
    return String(this.#ids).padStart(ID_CHARACTERS, '0');
  }

  newTraceId(): string {
    return this.newId().padStart(TRACE_ID_DIGITS, '0');
  }

  /** @throws what a transition throws, such as TypeError for a result that is not awaited */
  apply(command: SessionCommand, atMs: number): void {
    const earlier = new CommitPlan();
    applyCommand({ kinds: actorKinds, partition: PARTITION, state: this.#state, command, inputs: this.#inputs(command, atMs), earlier });
    this.#store(earlier);
  }

  #inputs(command: SessionCommand, atMs: number): ActorInputs {
    const { greeting, tools } = this.#bundle;
    const { documents } = this;
    return {
      ...{ atMs, coalesceMs: COALESCE_MS, turnTimeoutMs: TURN_TIMEOUT_MS },
      ...{ newId: () => this.newId(), newTraceId: () => this.newTraceId(), chance: () => 0 },
      greetingOf: () => greeting,
      ...{ runOf: () => null, isSettled: () => false, isSuperseded: () => false, isClaimed: () => false, toolsOf: () => null, stagedOf: () => new Map() },
      stored: { event: this.log.find(({ id }) => id === checkedEventOf(command)) ?? null, cut: null },
      engine: {
        documentsOf: () => documents,
        hasPreambles: () => false,
        agentStateOf: () => ({ offset: -1, state: this.agentState }),
        rowsOf: (turnId) => this.rowsOf(turnId),
        listsOf: () => tools.hashes,
        toolsOf: (hash) => tools.toolsOf(hash),
        recordedOf: (callId) => this.recorded.get(callId) ?? null,
      },
    };
  }

  #store(plan: CommitPlan): void {
    for (const { event } of plan.events) this.log.push(stored(event));
    for (const { offset, text } of plan.changedEvents) {
      const at = this.log.findIndex((event) => event.offset === offset);
      if (at >= 0) this.log[at] = JSON.parse(text) as ConversationEvent;
    }
    const state = plan.sessions.get(SESSION_ID);
    if (state !== undefined) this.#state = stored(state);
    for (const { turnId, seq, body } of plan.turnSteps) this.#rows.set(turnId, [...this.stagedOf(turnId), { seq, body: stored(body) }]);
    for (const { seq, state: remembered } of plan.agentStates) if (seq >= 0) this.agentState = stored(remembered) as AgentState;
    for (const id of plan.effectStates.keys()) this.open.delete(id);
    for (const effect of plan.effects.values()) if (effect.state === 'open') this.open.set(effect.id, stored(effect));
  }
}

function creation(bundleHash: string, allowGreeting: boolean, atMs: number): CommandOf<'session.create'> {
  const facts = { customerId: 'cus_in_memory', agentId: 'agent', title: null, mode: 'auto' as const, metadata: {}, labels: [] };
  return { ...headerOf('create', atMs), type: 'session.create', ...facts, allowGreeting, bundleHash };
}

/** Of a command to this session. */
export function headerOf(commandId: string, sentAtMs: number) {
  return { v: 1 as const, sessionId: SESSION_ID, commandId, sentAtMs, answerTo: null, traceparent: null };
}

/** As read from the store's JSON. */
function stored<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}
