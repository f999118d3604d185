import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf, CommandReply, SessionCommand } from '#bus/messages/session.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { CommitPlan } from './commit-plan.ts';
import { applyCommand, failActor } from './interpret.ts';
import type { SessionState } from './snapshots.ts';
import type { TransitionInputs } from './transition-inputs.ts';

const COALESCE_MS = 150;

describe('a session', () => {
  it('refuses a message to a session that does not exist, and stores nothing', () => {
    const world = new World();

    expect(world.apply(post('hello'))).toEqual({ ok: false, code: 'session.not_found', message: 'there is no such session' });
    expect(world.state).toBeNull();
  });

  it('refuses to be created twice', () => {
    const world = new World();
    world.apply(create());

    expect(world.apply(create())).toMatchObject({ ok: false, code: 'session.exists' });
  });

  it('begins with an empty log and answers its record', () => {
    const world = new World();

    expect(world.apply(create())).toMatchObject({ ok: true, value: { session: { id: 'ses_1', status: 'ready', last_offset: -1, customer_id: 'cus_1' } } });
    expect(world.log).toEqual([]);
  });

  it('greets at offset 0, then is ready, when its configuration has a greeting', () => {
    const world = new World({ greeting: 'Welcome!' });
    const reply = world.apply(create());

    expect(world.lines).toEqual(['assistant_message Welcome!', 'ready']);
    expect(world.log[1]?.trace_id).toBe(world.log[0]?.trace_id);
    expect(reply).toMatchObject({ ok: true, value: { session: { last_offset: 1 } } });
  });

  it('does not greet who asked for silence', () => {
    const world = new World({ greeting: 'Welcome!' });
    world.apply({ ...create(), allowGreeting: false });

    expect(world.lines).toEqual([]);
  });

  it('appends message, statuses, reply and ready in the canonical order, at dense offsets, under one trace', () => {
    const world = new World();
    world.apply(create());
    world.apply(post('How long is the warranty?'));
    world.apply(world.resultOf('Two years.'));

    expect(world.lines).toEqual(['user_message How long is the warranty?', 'acknowledged', 'typing', 'assistant_message Two years.', 'ready']);
    expect(world.log.map((event) => event.offset)).toEqual([0, 1, 2, 3, 4]);
    expect(new Set(world.log.map((event) => event.trace_id)).size).toBe(1);
    expect(world.log[3]).toMatchObject({ source: 'ai_agent', metadata: { model: 'scripted/assistant' } });
    expect(world.state?.turn).toBeNull();
  });

  it('answers a post with the stored event', () => {
    const world = new World();
    world.apply(create());
    const reply = world.apply(post('hello'));

    expect(reply).toEqual({ ok: true, value: { event: world.log[0] } });
  });

  it('DESIGN 5: a later message cancels the turn: cancelled and ready of the old trace stand before the new message', () => {
    const world = new World();
    world.apply(create());
    world.apply(post('one'));
    world.wait(COALESCE_MS + 1);
    world.apply(post('two'));

    expect(world.lines.slice(3)).toEqual(['cancelled', 'ready', 'user_message two', 'acknowledged', 'typing']);
    expect(world.log[4]?.trace_id).toBe(world.log[0]?.trace_id);
    expect(world.log[5]?.trace_id).not.toBe(world.log[0]?.trace_id);
    expect(world.aborted).toHaveLength(1);
  });

  it('takes a message within the coalescing window into the turn: one call superseded, one issued on the longer log, no cancelled', () => {
    const world = new World();
    world.apply(create());
    world.apply(post('one'));
    const first = world.openCall;
    world.wait(COALESCE_MS);
    world.apply(post('two'));

    expect(world.lines).toEqual(['user_message one', 'acknowledged', 'typing', 'user_message two']);
    expect(world.aborted).toEqual([first]);
    expect(world.openCall).not.toBe(first);
    expect(world.upToOffset).toBe(3);
    expect(world.timers.size).toBe(1);
    world.apply(world.resultOf('both answered'));
    expect(world.lines.slice(4)).toEqual(['assistant_message both answered', 'ready']);
    expect(world.timers.size).toBe(0);
  });

  it('DESIGN 5: the late result of a superseded call changes nothing', () => {
    const world = new World();
    world.apply(create());
    world.apply(post('one'));
    const late = world.resultOf('too late');
    world.wait(COALESCE_MS + 1);
    world.apply(post('two'));
    const before = world.log.length;
    world.apply(late);

    expect(world.log).toHaveLength(before);
    expect(world.openCall).not.toBeNull();
  });

  it('appends what a human says for the agent without starting a turn', () => {
    const world = new World();
    world.apply(create());
    world.apply({ ...post('A colleague here.'), source: 'human_agent', triggersTurn: false });

    expect(world.lines).toEqual(['assistant_message A colleague here.']);
    expect(world.openCall).toBeNull();
  });

  it('runs no turn in manual mode', () => {
    const world = new World();
    world.apply({ ...create(), mode: 'manual' });
    world.apply(post('anybody there?'));

    expect(world.lines).toEqual(['user_message anybody there?']);
  });

  it('ends the turn as an error when its deadline fires, and only once', () => {
    const world = new World();
    world.apply(create());
    world.apply(post('one'));
    const deadline = world.deadline();
    world.apply(deadline);
    world.apply(deadline);

    expect(world.lines.slice(3)).toEqual(['error', 'ready']);
    expect(world.log.at(-2)).toMatchObject({ error_detail: 'turn_timeout: the reply took longer than a turn may take' });
  });

  it('DESIGN 5: a model call that ran into the deadline of its turn is a timeout, though its result comes first', () => {
    const world = new World();
    world.apply(create());
    world.apply(post('one'));
    const [callId, deadline] = [world.openCall ?? '', world.deadline()];
    world.wait(world.transitionInputs().turnTimeoutMs);
    const failure = { code: 'router.provider_unavailable', message: '', details: {} };
    world.apply({ ...header, type: 'call.failed', commandId: callId, ...actorFields(callId.slice(0, callId.lastIndexOf('-'))), callId, failure });
    world.apply(deadline);

    expect(world.lines.slice(3)).toEqual(['error', 'ready']);
    expect(world.log.at(-2)).toMatchObject({ error_detail: 'turn_timeout: the reply took longer than a turn may take' });
  });

  it('DESIGN 4: a turn one of whose commands is poison ends as an error, then ready', () => {
    const world = new World();
    world.apply(create());
    world.apply(post('one'));
    world.fail();

    expect(world.lines.slice(3)).toEqual(['error', 'ready']);
  });

  it('leaves the plan as it was when a transition throws', () => {
    const world = new World();
    world.apply(create());
    const plan = new CommitPlan();
    const broken = {
      ...post('x'),
      get text(): string {
        throw new Error('broken');
      },
    };

    expect(() => applyCommand(plan, 1, world.state, broken, world.transitionInputs())).toThrow('broken');
    expect(plan.events).toEqual([]);
    expect(plan.sessions.size).toBe(0);
  });

  it('never lets time run backwards in a log', () => {
    const world = new World();
    world.apply(create());
    world.wait(-60_000);
    world.apply(post('one'));

    expect(Date.parse(world.log[0]?.created_at ?? '')).toBe(START_MS);
  });

  it('keeps every promise of the log under any sequence of messages, results, failures, deadlines and pauses', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('post' as const), pauseMs: fc.constantFrom(0, 100, 150, 151, 5_000) }),
      fc.record({
        kind: fc.constantFrom(
          'complete' as const,
          'fail' as const,
          'empty' as const,
          'deadline' as const,
          'stale' as const,
          'poison' as const,
          'human' as const,
        ),
      }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const world = new World();
        world.apply(create());
        for (const each of steps) world.play(each);
        world.finish();
        expectWholeTurns(world.log);
      }),
      { numRuns: 300 },
    );
  });
});

const START_MS = Date.UTC(2026, 0, 1);
const header = { v: 1 as const, sessionId: 'ses_1', sentAtMs: START_MS, answerTo: null, traceparent: null };
let counter = 0;

function create(): CommandOf<'session.create'> {
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

function post(text: string): CommandOf<'message.post'> {
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

/** One session with the rows that a store would have, driven command by command. */
class World {
  state: SessionState | null = null;
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

  transitionInputs(): TransitionInputs {
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
      toolsOf: () => null,
      stagedOf: () => new Map(),
      chance: () => 0.5,
    };
  }

  apply(command: SessionCommand): CommandReply | null {
    const plan = new CommitPlan();
    const reply = applyCommand(plan, 1, this.state, command, this.transitionInputs());
    this.#store(plan);
    return reply;
  }

  fail(): void {
    if (this.state === null) return;
    const plan = new CommitPlan();
    failActor(plan, 1, this.state, post('poison'), this.transitionInputs());
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
    else if (step.kind === 'human') this.apply({ ...post('human'), source: 'human_agent', triggersTurn: false });
    else this.apply({ ...header, type: 'call.failed', commandId: callId, ...actorFields(''), callId, failure: { code: 'internal', message: '', details: {} } });
  }

  /** Sends the awaited result. */
  finish(): void {
    if (this.openCall !== null) this.apply(this.resultOf('the last reply'));
  }

  #store(plan: CommitPlan): void {
    for (const { event } of plan.events) this.log.push(event);
    this.state = plan.sessions.get('ses_1') ?? this.state;
    // As restored from the store's JSON.
    if (this.state !== null) this.state = JSON.parse(JSON.stringify(this.state)) as SessionState;
    for (const [id] of plan.effectStates) if (id === this.openCall) this.openCall = null;
    for (const effect of plan.effects.values()) {
      this.calls.push(effect.id);
      if (effect.state !== 'open') continue;
      this.openCall = effect.id;
      if (effect.kind === 'router-call') this.upToOffset = effect.inputs.upToOffset;
    }
    for (const { callId } of plan.after.aborts) this.aborted.push(callId);
    for (const timer of plan.timers.values()) {
      if (timer.dueAtMs === null) this.timers.delete(timer.key);
      else this.timers.set(timer.key, timer.command);
    }
  }
}

/** Offsets are dense; turns never overlap; each ends in exactly one `ready`, the last event of its trace. */
function expectWholeTurns(log: readonly ConversationEvent[]): void {
  expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
  const turns = new Map<string, ConversationEvent[]>();
  for (const event of log) {
    if (event.source === 'human_agent') continue;
    turns.set(event.trace_id, [...(turns.get(event.trace_id) ?? []), event]);
  }
  for (const events of turns.values()) {
    const words = events.map((event) => (event.kind === 'status' ? event.status : event.kind)).join(' ');
    expect(words).toMatch(/^user_message acknowledged typing( user_message)*( assistant_message| cancelled| error) ready$/);
  }
  // No turn begins before the previous one is ready.
  const order = log.filter((event) => event.kind === 'status' && (event.status === 'acknowledged' || event.status === 'ready'));
  order.forEach((event, index) => {
    expect(event).toMatchObject({ status: index % 2 === 0 ? 'acknowledged' : 'ready' });
  });
}
