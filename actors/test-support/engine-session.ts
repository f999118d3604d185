import { actorFields } from '#bus/messages/actor-fields.ts';
import { type CommandOf, checkedEventOf, type ModerationMode, type SessionCommand } from '#bus/messages/session.ts';
import type { ListedTool } from '#bus/messages/tool.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { EffectRow } from '../effects/effect-row.ts';
import { type AgentState, readAgentState, withAmendments } from '../engine/agent-state.ts';
import type { EngineDocuments } from '../engine/engine-documents.ts';
import { readTurnRows, type TurnRow } from '../engine/turn-row.ts';
import type { ActorInputs } from '../inputs/actor-inputs.ts';
import { CommitPlan } from '../runtime/apply/commit-plan.ts';
import type { EndedWork } from '../runtime/apply/commit-rows.ts';
import type { SessionState } from '../runtime/apply/session-state.ts';
import { applyTo, failIn } from './apply.ts';
import { cutOf } from './cut-of.ts';
import { COALESCE_MS, create, header, post, START_MS } from './driven-session.ts';

/** A session of an agent with policies, with the rows that a store would have. */
export class EngineSession {
  state: SessionState | null = null;
  readonly log: ConversationEvent[] = [];
  readonly aborted: string[] = [];
  /** The configuration can't be read: nothing is known of its turns. */
  isUnreadable = false;
  /** Of turns and their parts. */
  readonly ended: EndedWork[] = [];
  /** Of the log lines after commits: `what (outcome)`. */
  readonly notes: string[] = [];
  /** Of its agent. */
  hasPreambles = false;
  /** As they were stored, also those that are deleted. */
  readonly agentStates: object[] = [];
  #remembered: { seq: number; offset: number; state: AgentState }[] = [];
  readonly open = new Map<string, EffectRow>();
  /** Armed, by key. */
  readonly timers = new Map<string, { dueAtMs: number; command: string }>();
  readonly #rows = new Map<string, { offset: number; body: object }[]>();
  #documents: EngineDocuments | null;
  readonly #tools: Readonly<Record<string, readonly ListedTool[]>>;
  #nowMs = START_MS;
  #ids = 0;

  /** @param documents null: its turns are one model call @param tools by server */
  constructor(documents: EngineDocuments | null, tools: Readonly<Record<string, readonly ListedTool[]>> = {}) {
    this.#documents = documents;
    this.#tools = tools;
    this.apply({ ...create(), allowGreeting: false });
  }

  /** Another version of the documents, for turns that begin from now on: none is in progress. */
  rollOut(documents: EngineDocuments): void {
    this.#documents = documents;
  }

  get lines(): string[] {
    return this.log.map((event) => {
      if (event.kind === 'status') return `${event.status}${event.stage ? `/${event.stage}` : ''}${event.error_detail ? ` (${event.error_detail})` : ''}`;
      return `${event.kind} ${'text' in event ? event.text : ''}`;
    });
  }

  get turnId(): string {
    return [...this.open.values()].find(({ kind }) => kind !== 'moderation')?.actorId ?? [...this.#rows.keys()].at(-1) ?? '';
  }

  /** Of all turns. */
  get turnIds(): string[] {
    return [...this.#rows.keys()];
  }

  /** Of the way to the reply, without that of the check behind it. */
  rows(turnId = this.turnId): TurnRow[] {
    return readTurnRows((this.#rows.get(turnId) ?? []).map(({ body }) => body)).filter(({ kind }) => kind !== 'applied-check');
  }

  /** Open structured calls by what they are about: `trn_1-2 [a b]`, `trn_1-3 next-step`. */
  get asked(): string[] {
    return [...this.open.values()].flatMap(({ id, inputs }) => {
      const { reference } = inputs as { reference?: null | { policyIds?: string[]; kind?: string } };
      return reference?.policyIds === undefined && reference?.kind === undefined ? [] : [`${id} ${reference.kind ?? `[${reference.policyIds?.join(' ')}]`}`];
    });
  }

  say(text: string, pauseMs = 60_000): void {
    this.#nowMs += pauseMs;
    this.apply(post(text));
  }

  /** A message that moderation checks. @returns the id of its check */
  sayChecked(text: string, { mode = 'auto', pauseMs = 60_000, ...fields }: { mode?: ModerationMode; pauseMs?: number; triggersTurn?: boolean } = {}): string {
    this.#nowMs += pauseMs;
    this.apply({ ...post(text), v: 3, moderation: mode, ...fields });
    return this.checks.at(-1) ?? '';
  }

  /** Open checks of messages. */
  get checks(): string[] {
    return [...this.open.values()].flatMap(({ id, kind }) => (kind === 'moderation' ? [id] : []));
  }

  /** Ends an open check. */
  moderate(callId: string, outcome: 'passed' | 'unavailable' | readonly string[]): void {
    const passed = this.resultOf(callId, '');
    const { text: _, ...result } = passed;
    const isFailed = outcome === 'unavailable';
    const failure = { code: isFailed ? 'router.plugin_unavailable' : 'router.content_policy', message: 'm', details: isFailed ? {} : { reasons: outcome } };
    this.apply(outcome === 'passed' ? { ...passed, model: '', provider: 'guard' } : { ...result, type: 'call.failed', failure });
  }

  /** Answers an open matching call. @param applying ids of policies whose condition holds */
  judge(callId: string, applying: readonly string[]): void {
    const inputs = this.open.get(callId)?.inputs as { reference: { policyIds: string[] } } | undefined;
    const policyIds = inputs?.reference.policyIds ?? [];
    const verdicts = policyIds.map((id, index) => ({ id: index + 1, rationale: `because of ${id}`, applies: applying.includes(id) }));
    this.reply(callId, JSON.stringify({ verdicts }));
  }

  /** Answers the open check of a reply. @param missed ids of policies that the reply does not follow */
  checkReply(callId: string, missed: readonly string[] = []): void {
    const { reference } = (this.open.get(callId)?.inputs ?? {}) as { reference?: { policyIds: string[] } };
    const verdicts = (reference?.policyIds ?? []).map((id, index) => ({ id: index + 1, rationale: `as to ${id}`, followed: !missed.includes(id) }));
    this.reply(callId, JSON.stringify({ verdicts }));
  }

  /** Answers the check after a turn. */
  judgeApplied(callId: string, applied: readonly string[]): void {
    const { policyIds = [] } = (this.open.get(callId)?.inputs ?? {}) as { policyIds?: string[] };
    this.reply(callId, JSON.stringify({ verdicts: policyIds.map((id, index) => ({ id: index + 1, rationale: 'r', applies: applied.includes(id) })) }));
  }

  reply(callId: string, text: string): void {
    this.apply(this.resultOf(callId, text));
  }

  /** Answers an open call for a vector. @param vector in base64; absent: the result has none, as from a worker of a release before */
  embedded(callId: string, vector?: string): void {
    this.apply({ ...this.resultOf(callId, ''), ...(vector !== undefined && { vectors: [vector] }) });
  }

  /** Answers an open model call. */
  fail(callId: string, code = 'router.provider_unavailable'): void {
    const { text: _, ...result } = this.resultOf(callId, '');
    this.apply({ ...result, type: 'call.failed', failure: { code, message: 'failed', details: {} } });
  }

  /** Answers the call for a preamble, after a while. @param text null: the call fails */
  preamble(callId: string, text: string | null, pauseMs = 0): void {
    this.#nowMs += pauseMs;
    if (text !== null) {
      this.reply(callId, JSON.stringify({ preamble: text }));
      return;
    }
    const { text: _, ...result } = this.resultOf(callId, '');
    const failure = { code: 'router.timeout', message: 'late', details: {} };
    this.apply({ ...result, type: 'call.failed', failure });
  }

  /** Time passes. */
  pause(ms: number): void {
    this.#nowMs += ms;
  }

  /** Answers an open call that infers tools. */
  infer(callId: string, ...calls: [name: string, args: object][]): void {
    const toolCalls = calls.map(([name, args], index) => ({ id: `call_${index}`, name, arguments: JSON.stringify(args) }));
    this.apply({ ...this.resultOf(callId, ''), toolCalls, finishReason: 'tool_calls' });
  }

  /** Reports an open tool call. */
  tool(callId: string, outcome: CommandOf<'tool.completed'>['outcome']): void {
    const actorId = callId.slice(0, callId.lastIndexOf('-'));
    this.apply({ ...header, type: 'tool.completed', commandId: callId, ...actorFields(actorId), callId, outcome });
  }

  /** Fires an armed timer. @returns how long it was armed for, at this time */
  ring(key: string): number {
    const timer = this.timers.get(key);
    if (timer === undefined) throw new Error(`no timer ${key} is armed`);
    const afterMs = timer.dueAtMs - this.#nowMs;
    this.#nowMs = Math.max(this.#nowMs, timer.dueAtMs);
    this.timers.delete(key);
    this.apply(JSON.parse(timer.command) as SessionCommand);
    return afterMs;
  }

  /** The turn's timer, after a while. */
  deadline(turnId: string, pauseMs: number): void {
    this.#nowMs += pauseMs;
    this.apply({ ...header, type: 'turn.deadline', commandId: `${turnId}-deadline-${pauseMs}`, turnId });
  }

  /**
   * Answers everything that is open, until nothing is.
   * @param applying ids of policies, and of conditions of routines
   * @param choice of the next step
   */
  finish(applying: readonly string[] = [], choice = '0'): void {
    for (let [call] = this.open.values(); call !== undefined; [call] = this.open.values()) {
      const { reference, call: asked } = call.inputs as { reference?: { kind?: string } | null; call?: string };
      if (call.kind === 'moderation') this.moderate(call.id, 'passed');
      else if (call.kind === 'turn-preamble') this.preamble(call.id, null);
      else if (call.kind === 'rewrite-query') this.reply(call.id, '{"query":"a query"}');
      else if (call.kind === 'embed') this.embedded(call.id, 'AACAPwAAAAA=');
      else if (call.kind === 'embed-messages') this.fail(call.id);
      else if (call.kind === 'search') this.tool(call.id, { type: 'result', data: { documents: [] }, metadata: {}, isError: false });
      else if (call.kind === 'turn-applied') this.judgeApplied(call.id, []);
      else if (call.kind !== 'turn-step') this.reply(call.id, 'a reply');
      else if (asked === 'check-reply') this.checkReply(call.id);
      else if (reference?.kind === 'next-step') this.reply(call.id, JSON.stringify({ rationale: 'r', step_completed: choice !== '0', choice }));
      else if (reference?.kind === 'backtrack') this.reply(call.id, JSON.stringify({ rationale: 'r', requires_backtracking: false, same_process: true }));
      else this.judge(call.id, applying);
    }
  }

  resultOf(callId: string, text: string): CommandOf<'call.completed'> {
    return {
      ...{ ...header, type: 'call.completed', commandId: callId, ...actorFields(callId.slice(0, callId.lastIndexOf('-'))), callId, text },
      ...{ model: 'scripted/assistant', provider: 'Scripted', toolCalls: [], finishReason: 'stop', usage: { promptTokens: 10, completionTokens: 2 } },
    };
  }

  apply(...commands: SessionCommand[]): void {
    const plan = new CommitPlan();
    for (const command of commands) applyTo(plan, plan.sessions.get('ses_1') ?? this.state, command, this.#inputs(command));
    this.#store(plan);
  }

  /** A command of the turn could not be applied. */
  poison(): void {
    const command = post('poison');
    const plan = new CommitPlan();
    failIn(plan, this.state, command, this.#inputs(command));
    this.#store(plan);
  }

  #inputs(command: SessionCommand): ActorInputs {
    const newId = () => {
      this.#ids += 1;
      return String(this.#ids);
    };
    const rows = new Map([...this.#rows].map(([id, bodies]) => [id, readTurnRows(bodies.map(({ body }) => body))]));
    return {
      ...{ atMs: this.#nowMs, coalesceMs: COALESCE_MS, turnTimeoutMs: 180_000, greetingOf: () => null, newId, newTraceId: () => newId().padStart(32, 'f') },
      ...{ runOf: () => null, isSettled: () => false, isSuperseded: () => false, isClaimed: () => false, toolsOf: () => null, stagedOf: () => new Map() },
      chance: () => 0.5,
      stored: {
        event: this.#storedEvent(command.type === 'event.patch' ? command.eventId : checkedEventOf(command)),
        cut: command.type === 'events.delete' ? cutOf(this.log, command.minOffset) : null,
      },
      ...(!this.isUnreadable && {
        engine: {
          documentsOf: () => this.#documents,
          hasPreambles: () => this.hasPreambles,
          agentStateOf: () => this.#newestState(),
          rowsOf: (turnId) => rows.get(turnId) ?? [],
          listsOf: () => Object.fromEntries(Object.keys(this.#tools).map((server) => [server, `list-${server}`])),
          toolsOf: (hash) => this.#tools[hash.replace('list-', '')] ?? null,
        },
      }),
    };
  }

  #newestState(): { offset: number; state: AgentState } | null {
    const newest = this.#remembered.findLast(({ seq }) => seq >= 0);
    const amendments = this.#remembered
      .filter(({ seq }) => seq < 0)
      .toSorted((left, right) => left.offset - right.offset)
      .map(({ state }) => state);
    return newest === undefined ? null : { offset: newest.offset, state: withAmendments(newest.state, amendments) };
  }

  #storedEvent(eventId: string | null): ConversationEvent | null {
    return this.log.find(({ id }) => id === eventId) ?? null;
  }

  /** States and rows as restored from the store's JSON. */
  #store(plan: CommitPlan): void {
    const stored = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;
    for (const { event } of plan.events) this.log.push(event);
    for (const { offset, text } of plan.changedEvents) {
      const index = this.log.findIndex((event) => event.offset === offset);
      this.log.splice(index, 1, JSON.parse(text) as ConversationEvent);
    }
    for (const { fromOffset, toOffset } of plan.deletedEvents) {
      const kept = this.log.filter(({ offset }) => offset < fromOffset || offset >= toOffset);
      this.log.splice(0, this.log.length, ...kept);
      this.#remembered = this.#remembered.filter(({ offset }) => offset < fromOffset);
      for (const [id, rows] of this.#rows)
        this.#rows.set(
          id,
          rows.filter(({ offset }) => offset < fromOffset),
        );
    }
    const state = plan.sessions.get('ses_1');
    if (state !== undefined) this.state = stored(state);
    for (const { turnId, seq, offset, body } of plan.turnSteps) {
      const rows = this.#rows.get(turnId) ?? [];
      if (seq !== rows.length) throw new Error(`row ${seq} of ${turnId} after ${rows.length} rows`);
      this.#rows.set(turnId, [...rows, { offset, body: stored(body) }]);
    }
    for (const { seq, offset, state: remembered } of plan.agentStates) {
      if (seq >= 0) this.agentStates.push(stored(remembered));
      this.#remembered.push({ seq, offset, state: readAgentState(stored(remembered)) });
    }
    for (const id of plan.effectStates.keys()) this.open.delete(id);
    for (const effect of plan.effects.values()) if (effect.state === 'open') this.open.set(effect.id, stored(effect));
    for (const timer of plan.timers.values()) {
      if (timer.dueAtMs === null) this.timers.delete(timer.key);
      else this.timers.set(timer.key, timer);
    }
    for (const { callId } of plan.after.aborts) this.aborted.push(callId);
    this.ended.push(...plan.after.ended);
    for (const { what, end } of plan.after.milestones) this.notes.push(`${what} (${end?.outcome ?? ''})`);
  }
}
