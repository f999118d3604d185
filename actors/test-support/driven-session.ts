import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf, CommandReply, SessionCommand } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { ActorInputs } from '../inputs/actor-inputs.ts';
import { CommitPlan } from '../runtime/apply/commit-plan.ts';
import type { SessionState } from '../runtime/apply/session-state.ts';
import { applyTo, failIn } from './apply.ts';
import { cutOf } from './cut-of.ts';

export const COALESCE_MS = 150;
export const START_MS = Date.UTC(2026, 0, 1);
export const header = { v: 1 as const, sessionId: 'ses_1', sentAtMs: START_MS, answerTo: null, traceparent: null };
let counter = 0;

export function create(): CommandOf<'session.create'> {
  return {
    ...header,
    type: 'session.create',
    commandId: 'ses_1-create',
    customerId: 'cus_1',
    agentId: 'agent',
    title: null,
    mode: 'auto',
    metadata: {},
    labels: [],
    allowGreeting: true,
    bundleHash: 'bundle',
  };
}

export function post(text: string): CommandOf<'message.post'> {
  counter += 1;
  const traceId = String(counter).padStart(32, '0');
  return {
    ...header,
    type: 'message.post',
    commandId: `cmd_${counter}`,
    source: 'customer',
    text,
    metadata: {},
    triggersTurn: true,
    traceId,
    bundleHash: 'bundle',
  };
}

/** A synthetic tool result. */
export function toolEvent(changes: Partial<CommandOf<'tool-event.post'>> = {}): CommandOf<'tool-event.post'> {
  const { commandId, traceId, bundleHash } = post('');
  return {
    ...{ ...header, v: 3, type: 'tool-event.post', commandId, traceId, bundleHash, toolId: 'shop:order', arguments: { id: 7 }, result: { state: 'shipped' } },
    ...{ resultMetadata: { source: 'crm' }, metadata: { by: 'crm' }, triggersTurn: true, ...changes },
  };
}

/** An event of a front end. */
export function clientEvent(content: CommandOf<'client-event.post'>['content']): CommandOf<'client-event.post'> {
  const { commandId, traceId } = post('');
  return { ...header, v: 3, type: 'client-event.post', commandId, traceId, source: 'customer_ui', content, metadata: { tab: 1 } };
}

/** A deletion of events. */
export function deleteEvents(minOffset: number, force = false): CommandOf<'events.delete'> {
  return { ...header, v: 3, type: 'events.delete', commandId: post('').commandId, minOffset, force };
}

/** A patch of an event's metadata. */
export function patchEvent(eventId: string, setMetadata: Record<string, unknown>, unsetMetadata: string[] = []): CommandOf<'event.patch'> {
  return { ...header, v: 3, type: 'event.patch', commandId: post('').commandId, eventId, setMetadata, unsetMetadata };
}

/** One session with the rows that a store would have, driven command by command. */
export class DrivenSession {
  state: SessionState | null = null;
  /** Without deleted events. */
  readonly log: ConversationEvent[] = [];
  readonly aborted: string[] = [];
  readonly timers = new Map<string, string>();
  readonly calls: string[] = [];
  openCall: string | null = null;
  upToOffset = -1;
  #nowMs = START_MS;
  #ids = 0;
  readonly #greeting: string | null;

  constructor({ greeting = null }: { greeting?: string | null } = {}) {
    this.#greeting = greeting;
  }

  get lines(): string[] {
    return this.log.map((event) => {
      if (event.kind === 'status') return `${event.status}${event.stage ? `/${event.stage}` : ''}`;
      return `${event.kind} ${'text' in event ? event.text : ''}`;
    });
  }

  wait(ms: number): void {
    this.#nowMs += ms;
  }

  transitionInputs(): ActorInputs {
    return {
      atMs: this.#nowMs,
      coalesceMs: COALESCE_MS,
      turnTimeoutMs: 180_000,
      greetingOf: () => this.#greeting,
      newId: () => {
        this.#ids += 1;
        return String(this.#ids);
      },
      newTraceId: () => {
        this.#ids += 1;
        return String(this.#ids).padStart(32, 'f');
      },
      runOf: () => null,
      isSettled: () => false,
      isSuperseded: () => false,
      isClaimed: () => false,
      toolsOf: () => null,
      stagedOf: () => new Map(),
      chance: () => 0.5,
    };
  }

  apply(command: SessionCommand): CommandReply | null {
    const plan = new CommitPlan();
    const reply = applyTo(plan, this.state, command, { ...this.transitionInputs(), stored: this.#storedFor(command) });
    this.#store(plan);
    return reply;
  }

  /** As the store reads it. */
  #storedFor(command: SessionCommand): NonNullable<ActorInputs['stored']> {
    const event = command.type === 'event.patch' ? (this.log.find(({ id }) => id === command.eventId) ?? null) : null;
    return { event, cut: command.type === 'events.delete' ? cutOf(this.log, command.minOffset) : null };
  }

  /** Replaces the states of its actors. */
  restore(actors: SessionState['actors']): void {
    if (this.state !== null) this.state = { ...this.state, actors };
  }

  fail(): void {
    if (this.state === null) return;
    const plan = new CommitPlan();
    failIn(plan, this.state, post('poison'), this.transitionInputs());
    this.#store(plan);
  }

  resultOf(text: string, callId = this.openCall ?? 'trn_0-1', finishReason = 'stop'): CommandOf<'call.completed'> {
    return {
      ...header,
      type: 'call.completed',
      commandId: callId,
      ...actorFields(callId.slice(0, callId.lastIndexOf('-'))),
      callId,
      text,
      model: 'scripted/assistant',
      provider: 'Scripted',
      toolCalls: [],
      finishReason,
      usage: null,
    };
  }

  deadline(): SessionCommand {
    const [command] = this.timers.values();
    return command === undefined ? { ...header, type: 'turn.deadline', commandId: 'none', turnId: 'trn_0' } : (JSON.parse(command) as SessionCommand);
  }

  play(step: { kind: string; pauseMs?: number }): void {
    const callId = this.openCall ?? 'trn_0-1';
    if (step.kind === 'post') {
      this.wait(step.pauseMs ?? 0);
      this.apply(post('a message'));
    } else if (step.kind === 'complete') this.apply(this.resultOf('a reply'));
    else if (step.kind === 'empty') this.apply(this.resultOf(''));
    else if (step.kind === 'stale') this.apply(this.resultOf('stale', this.calls[0] ?? 'trn_0-1'));
    else if (step.kind === 'deadline') this.apply(this.deadline());
    else if (step.kind === 'poison') this.fail();
    else if (step.kind === 'tool') this.apply(toolEvent());
    else if (step.kind === 'quiet tool') this.apply(toolEvent({ triggersTurn: false, metadata: { isQuiet: true } }));
    else if (step.kind === 'human') this.apply({ ...post('human'), source: 'human_agent', triggersTurn: false });
    else this.apply({ ...header, type: 'call.failed', commandId: callId, ...actorFields(''), callId, failure: { code: 'internal', message: '', details: {} } });
  }

  /** Sends the awaited result. */
  finish(): void {
    if (this.openCall !== null) this.apply(this.resultOf('the last reply'));
  }

  #store(plan: CommitPlan): void {
    for (const { event } of plan.events) this.log.push(event);
    for (const { offset, text } of plan.changedEvents) {
      const index = this.log.findIndex((event) => event.offset === offset);
      this.log.splice(index, 1, JSON.parse(text) as ConversationEvent);
    }
    for (const { fromOffset, toOffset } of plan.deletedEvents) {
      const kept = this.log.filter(({ offset }) => offset < fromOffset || offset >= toOffset);
      this.log.splice(0, this.log.length, ...kept);
    }
    this.state = plan.sessions.get('ses_1') ?? this.state;
    // As restored from the store's JSON.
    if (this.state !== null) this.state = JSON.parse(JSON.stringify(this.state)) as SessionState;
    for (const [id] of plan.effectStates) if (id === this.openCall) this.openCall = null;
    for (const effect of plan.effects.values()) {
      this.calls.push(effect.id);
      if (effect.state !== 'open') continue;
      this.openCall = effect.id;
      if (effect.kind === 'router-call') this.upToOffset = Number(effect.inputs.upToOffset);
    }
    for (const { callId } of plan.after.aborts) this.aborted.push(callId);
    for (const timer of plan.timers.values()) {
      if (timer.dueAtMs === null) this.timers.delete(timer.key);
      else this.timers.set(timer.key, timer.command);
    }
  }
}
