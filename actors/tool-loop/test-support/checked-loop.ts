import { type AnyMachineSnapshot, initialTransition, transition } from 'xstate';
import type { LoopActions, LoopReply, StepMessage, ToolOutcome } from '../types.ts';
import type { LoopMachine } from './users.ts';

/** The effects of any user. */
interface OpenedEffect {
  kind: string;
  id: string;
}

type Action =
  | { type: 'effect'; params: OpenedEffect }
  | { type: 'timer'; params: { key: string } }
  | { [Type in 'fact' | 'stage' | 'toolEvent' | 'supersede' | 'disarm']: { type: Type; params: LoopActions[Type] } }[
      | 'fact'
      | 'stage'
      | 'toolEvent'
      | 'supersede'
      | 'disarm'];

/** A user of the loop with a runtime's bookkeeping. Each step is checked, which throws, and repeated from the stored snapshot. */
export class CheckedLoop {
  readonly user: LoopMachine;
  /** Open effects by id. */
  readonly open = new Map<string, string>();
  readonly transcript: StepMessage[] = [];
  readonly #timers = new Set<string>();
  #effects = 0;
  #snapshot: AnyMachineSnapshot;

  constructor(user: LoopMachine, given: { maxIterations: number; servers: readonly string[] }) {
    this.user = user;
    const [snapshot, actions] = initialTransition(user.machine, user.inputOf(given));
    this.#snapshot = snapshot;
    this.#applyAll(actions);
  }

  get state(): string {
    return String(this.#snapshot.value);
  }

  get isDone(): boolean {
    return this.#snapshot.status === 'done';
  }

  /** The loop's own actions of this step, as text without the actor's id. */
  meet(body: { type: string; callId?: string }, atMs = 5_000): string[] {
    const event = { ...body, atMs };
    const { machine } = this.user;
    const before = { value: this.#snapshot.value, context: this.#snapshot.context };
    const [next, actions] = transition(machine, this.#snapshot, event);
    const [copy, copied] = transition(machine, machine.resolveState(JSON.parse(JSON.stringify(before))), event);
    if (!this.isDone) {
      requireSame([copy.value, copy.context, copied.map(plain)], [next.value, next.context, actions.map(plain)], 'from the stored snapshot');
    }
    if (event.callId !== undefined) {
      // As in the runtime: a result with actions was an awaited one.
      const isAwaited = this.open.delete(event.callId);
      requireSame(actions.length > 0, isAwaited, `actions for the result of ${event.callId}`);
    }
    if (actions.length === 0) requireSame({ value: next.value, context: next.context }, before, 'without an action');
    this.#snapshot = next;
    return this.#applyAll(actions);
  }

  reply(meaning: LoopReply, callId = this.lastCall): string[] | null {
    const reply = this.user.replyOf(meaning);
    return reply === null ? null : this.meet({ type: 'call.replied', callId, ...{ reply } });
  }

  settle(index: number, outcome: ToolOutcome): string[] {
    const ids = this.awaited('tool-call');
    return this.meet({ type: 'tool.settled', callId: ids[index % Math.max(1, ids.length)] ?? `${this.user.actorId}-99`, ...{ outcome } });
  }

  /** Ids of open effects. */
  awaited(kind: string): string[] {
    return [...this.open].filter(([, opened]) => opened === kind).map(([id]) => id);
  }

  /** Of the last effect. */
  get lastCall(): string {
    return `${this.user.actorId}-${this.#effects}`;
  }

  /** @throws unless it has ended and awaits nothing */
  requireEnded(): void {
    requireSame([this.isDone, [...this.open], [...this.#timers]], [true, [], []], 'at the end');
  }

  #applyAll(actions: readonly { type: string; params?: unknown }[]): string[] {
    const lines: string[] = [];
    for (const { type, params } of actions) {
      const line = this.#applyOne({ type, params } as Action);
      if (line !== null) lines.push(line.replaceAll(this.user.actorId, 'actor'));
    }
    return lines;
  }

  #applyOne(action: Action): string | null {
    switch (action.type) {
      case 'effect':
        return this.#openOne(action.params);
      case 'supersede':
        requireSame(this.open.delete(action.params.id), true, `an open effect ${action.params.id}`);
        return `supersede ${action.params.id}`;
      case 'timer':
        if (!action.params.key.endsWith('-overdue')) return null;
        this.#timers.add(action.params.key);
        return `timer ${action.params.key}`;
      case 'disarm':
        if (!action.params.key.endsWith('-overdue')) return null;
        requireSame(this.#timers.delete(action.params.key), true, `an armed timer ${action.params.key}`);
        return `disarm ${action.params.key}`;
      case 'stage':
        this.transcript.push(action.params.message);
        return `stage ${action.params.message.role}`;
      case 'toolEvent':
        return `tools ${action.params.calls.map(({ toolCallId }) => toolCallId)}`;
      default:
        return null;
    }
  }

  #openOne({ kind, id }: OpenedEffect): string {
    this.#effects += 1;
    requireSame(id, this.lastCall, 'the id of an effect');
    // A model is asked when nothing else is awaited; only calls of one batch are awaited together.
    const together = kind === 'tool-call' ? this.awaited('tool-call').length : 0;
    requireSame(this.open.size, together, `effects that are awaited with a ${kind}`);
    this.open.set(id, kind);
    return `${kind} ${id}`;
  }
}

function requireSame(actual: unknown, expected: unknown, what: string): void {
  const [found, required] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (found !== required) throw new Error(`${what}: ${found} instead of ${required}`);
}

function plain({ type, params }: { type: string; params?: unknown }): { type: string; params: unknown } {
  return { type, params };
}
