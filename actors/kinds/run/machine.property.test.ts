import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { initialTransition, type SnapshotFrom, transition } from 'xstate';
import { deadlineKeyOf, effectIdOf, overdueKeyOf } from '../../tool-loop/effect-ids.ts';
import type { StepMessage, ToolOutcome } from '../../tool-loop/types.ts';
import { RUN_MACHINE_VERSION, runMachine } from './machine.ts';
import type { RunActions, RunContext, RunEventBody, RunInput, RunReply } from './types.ts';

/** Thousands of transitions, possibly on a busy machine. */
const TIMEOUT_MS = 240_000;

const START_MS = 1_000;

/** A possible event. Its effect is chosen when it is applied: an open one, or any other. */
type RandomEvent =
  | { what: 'listed' | 'replied' | 'failed' | 'settled'; of: number; isStray: boolean; variant: number; calls: number; refused: number; afterMs: number }
  | { what: 'end'; variant: number; afterMs: number }
  | { what: 'cancel'; afterMs: number };

const randomEvent: fc.Arbitrary<RandomEvent> = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.record({
      what: fc.oneof(
        { weight: 30, arbitrary: fc.constantFrom('listed' as const, 'replied' as const, 'settled' as const) },
        { weight: 1, arbitrary: fc.constant('failed' as const) },
      ),
      of: fc.nat(40),
      isStray: fc.boolean(),
      variant: fc.nat(19),
      calls: fc.nat(4),
      refused: fc.nat(2),
      afterMs: mostly(100, 40_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('end' as const), variant: fc.nat(3), afterMs: mostly(100, 40_000) }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant('cancel' as const), afterMs: fc.constant(100) }) },
);

/** Usually the first value, sometimes the other. */
function mostly<Value>(usual: Value, other: Value): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 19, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constant(other) });
}

const input: fc.Arbitrary<RunInput> = fc.record({
  runId: fc.constant('run_1'),
  atMs: fc.constant(START_MS),
  deadlineAtMs: mostly(121_000, 500),
  timeoutMs: fc.constant(120_000),
  maxIterations: fc.integer({ min: 1, max: 4 }),
  servers: fc.constantFrom([], [], ['crm'], ['crm', 'erp']),
  hasFallbackModel: fc.boolean(),
  refusal: mostly<RunInput['refusal']>(null, { code: 'engine_error', message: 'the configuration has no such routine', details: {} }),
});

describe('any run', () => {
  it(
    'fulfils every promise, whatever happens in whatever order',
    () => {
      fc.assert(
        fc.property(input, fc.array(randomEvent, { maxLength: 40, size: 'max' }), (given, events) => {
          const run = new CheckedRun(given);
          for (const one of events) run.meet(run.eventOf(one), one.afterMs);
          run.meet({ type: 'run.deadline', actorId: 'run_1' });
          run.expectSettled();
          for (const one of events) run.expectIgnored(run.eventOf(one));
        }),
        { numRuns: 300 },
      );
    },
    TIMEOUT_MS,
  );

  it(
    'goes far enough before it ends, or the promises above would say little',
    () => {
      const visits = new Map<string, number>();
      fc.assert(
        fc.property(input, fc.array(randomEvent, { minLength: 20, maxLength: 40 }), (given, events) => {
          const run = new CheckedRun(given);
          for (const one of events) {
            run.meet(run.eventOf(one), one.afterMs);
            visits.set(run.state, (visits.get(run.state) ?? 0) + 1);
          }
        }),
        { numRuns: 200, seed: 7 },
      );

      expect([...visits.keys()].sort()).toEqual(['failed', 'listing', 'succeeded', 'thinking', 'tooling', 'windingUp']);
      // Waits for few calls, and not for long.
      expect(visits.get('windingUp')).toBeGreaterThan(20);
      visits.delete('windingUp');
      expect(Math.min(...visits.values())).toBeGreaterThan(100);
    },
    TIMEOUT_MS,
  );

  it('has a version that its snapshots are stored under', () => {
    expect(RUN_MACHINE_VERSION).toBe(1);
  });
});

type Action = { [Type in keyof RunActions]: { type: Type; params: RunActions[Type] } }[keyof RunActions];

/** A run and its copy, which is serialised and restored at every step, with a runtime's bookkeeping. */
class CheckedRun {
  readonly #maxIterations: number;
  readonly #open = new Map<string, RunActions['effect']['kind']>();
  readonly #timers = new Set<string>();
  readonly #transcript: StepMessage[] = [];
  readonly #settlements: RunActions['settle'][] = [];
  #facts = '';
  #effects = 0;
  #modelCalls = 0;
  #nowMs = START_MS;
  #snapshot: SnapshotFrom<typeof runMachine>;

  constructor(given: RunInput) {
    this.#maxIterations = given.maxIterations;
    const [snapshot, actions] = initialTransition(runMachine, given);
    this.#snapshot = snapshot;
    this.#applyAll(actions as readonly Action[]);
  }

  get state(): string {
    return this.#snapshot.value;
  }

  /** @param afterMs since the previous event */
  meet(body: RunEventBody, afterMs = 0): void {
    const { context } = this.#snapshot;
    if (this.#snapshot.status !== 'done') this.#nowMs += afterMs;
    const event = { ...body, atMs: this.#nowMs };
    const [next, actions] = transition(runMachine, this.#snapshot, event);
    const [copy, copiedActions] = transition(runMachine, restored(this.#snapshot), event);
    expect({ value: copy.value, status: copy.status, context: copy.context }).toEqual({ value: next.value, status: next.status, context: next.context });
    expect(copiedActions.map(plain)).toEqual(actions.map(plain));
    if (actions.length === 0) expect(next.context).toEqual(context);
    this.#snapshot = next;
    // As in the runtime: a result with actions was an awaited one.
    if ('callId' in event && actions.length > 0) expect(this.#open.delete(event.callId)).toBe(true);
    this.#applyAll(actions as readonly Action[]);
    expect(next.context.iteration).toBeLessThanOrEqual(this.#maxIterations);
    expect(this.#modelCalls).toBeLessThanOrEqual(3 * this.#maxIterations);
    expect(next.context.stepCount).toBe(this.#transcript.length);
    expect(next.context.effectNo).toBe(this.#effects);
  }

  expectIgnored(event: RunEventBody): void {
    const [next, actions] = transition(runMachine, restored(this.#snapshot), { ...event, atMs: this.#nowMs });
    expect(actions).toEqual([]);
    expect(next.context).toEqual(this.#snapshot.context);
  }

  expectSettled(): void {
    expect(this.#snapshot.status).toBe('done');
    expect(this.#settlements.map(({ state }) => state)).toEqual([this.#snapshot.value]);
    const [settlement] = this.#settlements;
    const isLate = this.#nowMs >= this.#snapshot.context.deadlineAtMs && this.#nowMs > START_MS;
    if (isLate && settlement?.state === 'failed') expect(settlement.error.code).toBe('timeout');
    expect(this.#open).toEqual(new Map());
    expect(this.#timers).toEqual(new Set());
    // a acknowledged, p processing, t tools, T the tool event, e error, r ready.
    expect(this.#facts).toMatch(this.#snapshot.value === 'succeeded' ? /^ap(tT)*r$/ : /^a(p(tT)*t?)?er$/);
  }

  eventOf(one: RandomEvent): RunEventBody {
    switch (one.what) {
      case 'end':
        return endOf(one.variant);
      case 'cancel':
        return cancelOf(this.#snapshot.context);
      case 'listed':
        return { type: 'tools.listed', callId: this.#effectFor(one, 'tool-list'), ...listsOf(this.#snapshot.context, one.variant) };
      case 'failed':
        return { type: 'call.failed', callId: this.#effectFor(one, 'router-call'), failure: { code: 'router.timeout', message: '', details: {} } };
      case 'settled':
        return { type: 'tool.settled', callId: this.#effectFor(one, 'tool-call'), outcome: outcomeOf(one.variant) };
      case 'replied': {
        const callId = this.#effectFor(one, 'router-call');
        return { type: 'call.replied', callId, reply: replyOf(callId, one) };
      }
    }
  }

  /** Usually an open effect. */
  #effectFor({ of, isStray }: { of: number; isStray: boolean }, kind: RunActions['effect']['kind']): string {
    const fitting = [...this.#open].filter(([, opened]) => opened === kind).map(([id]) => id);
    return (isStray && of % 3 === 0 ? undefined : fitting[of % Math.max(1, fitting.length)]) ?? effectIdOf('run_1', of);
  }

  #applyAll(actions: readonly Action[]): void {
    for (const action of actions) {
      expect(this.#settlements).toEqual([]);
      this.#applyOne(action);
    }
  }

  #applyOne(action: Action): void {
    switch (action.type) {
      case 'started':
        expect(this.#facts).toBe('');
        return;
      case 'fact':
        this.#facts += letterOf(action.params);
        return;
      case 'stage':
        this.#transcript.push(action.params.message);
        return;
      case 'toolEvent':
        this.#facts += 'T';
        for (const { toolCallId } of action.params.calls) expect(this.#answersTo(toolCallId)).toBe(1);
        return;
      case 'effect':
        this.#effects += 1;
        expect(action.params.id).toBe(effectIdOf('run_1', this.#effects));
        this.#open.set(action.params.id, action.params.kind);
        if (action.params.kind === 'router-call') this.#checkModelCall(action.params);
        return;
      case 'supersede':
        expect(this.#open.delete(action.params.id)).toBe(true);
        return;
      case 'timer':
        expect(action.params.key).toBe(action.params.command === 'run.deadline' ? deadlineKeyOf('run_1') : overdueKeyOf(action.params.command.callId));
        this.#timers.add(action.params.key);
        return;
      case 'disarm':
        this.#timers.delete(action.params.key);
        return;
      case 'settle':
        this.#settlements.push(action.params);
    }
  }

  /** Upstreams refuse a conversation in which a call has no tool message, or two. */
  #checkModelCall(effect: Extract<RunActions['effect'], { kind: 'router-call' }>): void {
    this.#modelCalls += 1;
    expect(effect.stepCount).toBe(this.#transcript.length);
    expect([...this.#open.values()]).toEqual(['router-call']);
    for (const message of this.#transcript) {
      if (message.role === 'assistant') for (const { id } of message.tool_calls ?? []) expect(this.#answersTo(id)).toBe(1);
    }
  }

  #answersTo(toolCallId: string): number {
    return this.#transcript.filter((message) => message.role === 'tool' && message.tool_call_id === toolCallId).length;
  }
}

/** As read from a database. */
function restored({ value, context }: SnapshotFrom<typeof runMachine>): SnapshotFrom<typeof runMachine> {
  const stored: { value: typeof value; context: RunContext } = JSON.parse(JSON.stringify({ value, context }));
  return runMachine.resolveState(stored);
}

function plain({ type, params }: { type: string; params?: unknown }): { type: string; params: unknown } {
  return { type, params };
}

function letterOf({ content }: RunActions['fact']): string {
  if (content.kind !== 'status') return '?';
  if (content.status === 'processing') return content.stage === 'tools' ? 't' : content.stage === 'thinking' ? 'p' : '?';
  if (content.status === 'error') return content.error_detail?.includes(': ') ? 'e' : '?';
  return { acknowledged: 'a', ready: 'r', typing: '?', cancelled: '?' }[content.status];
}

function endOf(variant: number): RunEventBody {
  const ends: RunEventBody[] = [
    { type: 'run.deadline', actorId: 'run_1' },
    { type: 'run.deadline', actorId: 'run_0' },
    { type: 'run.poisoned' },
    { type: 'run.orphaned' },
  ];
  return ends[variant] ?? { type: 'run.poisoned' };
}

/** Of a run with several calls, of which the first has not begun; most others would end too early. */
function cancelOf({ pending }: RunContext): RunEventBody {
  if (pending.length < 2) return { type: 'tool.settled', callId: 'run_0-1', outcome: outcomeOf(5) };
  return { type: 'run.cancel', claimed: pending.slice(1).map(({ callId }) => callId) };
}

function listsOf({ servers }: RunContext, variant: number): Pick<Extract<RunEventBody, { type: 'tools.listed' }>, 'lists' | 'unavailable' | 'timedOut'> {
  const [lost] = variant < 3 ? servers : [];
  const lists = Object.fromEntries(servers.filter((server) => server !== lost).map((server) => [server, 'h1']));
  return { lists, unavailable: lost === undefined ? {} : { [lost]: 'unreachable' }, timedOut: variant === 0 };
}

function outcomeOf(variant: number): ToolOutcome {
  const reasons = ['outcome_unknown', 'refused', 'timeout', 'unreachable', 'auth_failed'] as const;
  const reason = reasons[variant];
  if (reason !== undefined) return { type: 'failed', reason, message: 'as its worker says' };
  return { type: 'result', data: { found: variant }, metadata: {}, isError: variant % 2 === 0 };
}

function replyOf(callId: string, { variant, calls, refused }: { variant: number; calls: number; refused: number }): RunReply {
  if (variant < 2) return { type: 'output', output: { verdict: 'yes' } };
  if (variant < 4) return { type: 'unusable', finishReason: 'stop' };
  if (variant < 5)
    return {
      type: 'text',
      messages: [
        { role: 'assistant', content: 'Well …' },
        { role: 'user', content: 'Call a function.' },
      ],
    };
  if (variant < 8) {
    const violation = { path: '', schemaPath: '#/type', keyword: 'type', message: 'must be object' };
    return { type: 'invalid-output', violation, messages: [asking(`${callId}-0`), answering(`${callId}-0`)] };
  }
  const order = Array.from({ length: Math.max(1, calls + refused) }, (_, index) => ({ toolCallId: `${callId}-${index}`, toolId: `crm:tool${index}` }));
  const ids = order.map(({ toolCallId }) => toolCallId);
  return {
    type: 'tools',
    messages: [asking(...ids), ...ids.slice(calls).map(answering)],
    calls: order.slice(0, calls).map((call) => ({ ...call, listHash: 'h1' })),
    order,
  };
}

function asking(...ids: string[]): StepMessage {
  return { role: 'assistant', content: null, tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'crm__tool', arguments: '{}' } })) };
}

function answering(toolCallId: string): StepMessage {
  return { role: 'tool', tool_call_id: toolCallId, content: '{}', result: null };
}
