import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { ulid, ulidTimeMs } from '#shared/ids.ts';
import { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import { applyTo } from '../../test-support/apply.ts';
import { COALESCE_MS, create, DrivenSession, header, post, START_MS } from '../../test-support/driven-session.ts';

function sessionWithUlids(): DrivenSession {
  const driven = new DrivenSession();
  const inputs = driven.transitionInputs.bind(driven);
  driven.transitionInputs = () => ({ ...inputs(), newId: ulid });
  return driven;
}

/** The ULID of the turn that makes the call `trn_<ulid>-<number>`. */
const turnOf = (callId: string | null) => /^trn_(.*)-\d+$/.exec(callId ?? '')?.[1] ?? '';

describe('a session', () => {
  it('refuses a message to a session that does not exist, and stores nothing', () => {
    const driven = new DrivenSession();

    expect(driven.apply(post('hello'))).toEqual({ ok: false, code: 'session.not_found', message: 'there is no such session' });
    expect(driven.state).toBeNull();
  });

  it('refuses to be created twice', () => {
    const driven = new DrivenSession();
    driven.apply(create());

    expect(driven.apply(create())).toMatchObject({ ok: false, code: 'session.exists' });
  });

  it('begins with an empty log and replies with its record', () => {
    const driven = new DrivenSession();

    expect(driven.apply(create())).toMatchObject({ ok: true, value: { session: { id: 'ses_1', status: 'ready', last_offset: -1, customer_id: 'cus_1' } } });
    expect(driven.log).toEqual([]);
  });

  it('greets at offset 0, then is ready, when its configuration has a greeting', () => {
    const driven = new DrivenSession({ greeting: 'Welcome!' });
    const reply = driven.apply(create());

    expect(driven.lines).toEqual(['assistant_message Welcome!', 'ready']);
    expect(driven.log[1]?.trace_id).toBe(driven.log[0]?.trace_id);
    expect(reply).toMatchObject({ ok: true, value: { session: { last_offset: 1 } } });
  });

  it('does not greet when the request says so', () => {
    const driven = new DrivenSession({ greeting: 'Welcome!' });
    driven.apply({ ...create(), allowGreeting: false });

    expect(driven.lines).toEqual([]);
  });

  it('appends message, statuses, reply and ready in the canonical order, at dense offsets, under one trace', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('How long is the warranty?'));
    driven.apply(driven.resultOf('Two years.'));

    expect(driven.lines).toEqual(['user_message How long is the warranty?', 'acknowledged', 'typing', 'assistant_message Two years.', 'ready']);
    expect(driven.log.map((event) => event.offset)).toEqual([0, 1, 2, 3, 4]);
    expect(new Set(driven.log.map((event) => event.trace_id)).size).toBe(1);
    expect(driven.log[3]).toMatchObject({ source: 'ai_agent', metadata: { model: 'scripted/assistant' } });
    expect(driven.state?.actors.turn).toBeNull();
  });

  it('replies to a post with the stored event', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    const reply = driven.apply(post('hello'));

    expect(reply).toEqual({ ok: true, value: { event: driven.log[0] } });
  });

  it('DESIGN 5: a later message cancels the turn: cancelled and ready of the old trace stand before the new message', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('one'));
    driven.wait(COALESCE_MS + 1);
    driven.apply(post('two'));

    expect(driven.lines.slice(3)).toEqual(['cancelled', 'ready', 'user_message two', 'acknowledged', 'typing']);
    expect(driven.log[4]?.trace_id).toBe(driven.log[0]?.trace_id);
    expect(driven.log[5]?.trace_id).not.toBe(driven.log[0]?.trace_id);
    expect(driven.aborted).toHaveLength(1);
  });

  it('adds a message within the coalescing window to the turn: one call superseded, one issued on the longer log, no cancelled', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('one'));
    const first = driven.openCall;
    driven.wait(COALESCE_MS);
    driven.apply(post('two'));

    expect(driven.lines).toEqual(['user_message one', 'acknowledged', 'typing', 'user_message two']);
    expect(driven.aborted).toEqual([first]);
    expect(driven.openCall).not.toBe(first);
    expect(driven.upToOffset).toBe(3);
    expect(driven.timers.size).toBe(1);
    driven.apply(driven.resultOf('both answered'));
    expect(driven.lines.slice(4)).toEqual(['assistant_message both answered', 'ready']);
    expect(driven.timers.size).toBe(0);
  });

  it('DESIGN 5: the late result of a superseded call changes nothing', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('one'));
    const late = driven.resultOf('too late');
    driven.wait(COALESCE_MS + 1);
    driven.apply(post('two'));
    const before = driven.log.length;
    driven.apply(late);

    expect(driven.log).toHaveLength(before);
    expect(driven.openCall).not.toBeNull();
  });

  it('appends a human agent’s message without starting a turn', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply({ ...post('A colleague here.'), source: 'human_agent', triggersTurn: false });

    expect(driven.lines).toEqual(['assistant_message A colleague here.']);
    expect(driven.openCall).toBeNull();
  });

  it('runs no turn in manual mode', () => {
    const driven = new DrivenSession();
    driven.apply({ ...create(), mode: 'manual' });
    driven.apply(post('is this still open?'));

    expect(driven.lines).toEqual(['user_message is this still open?']);
  });

  it('ends the turn as an error when its deadline fires, and only once', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('one'));
    const deadline = driven.deadline();
    driven.apply(deadline);
    driven.apply(deadline);

    expect(driven.lines.slice(3)).toEqual(['error', 'ready']);
    expect(driven.log.at(-2)).toMatchObject({ error_detail: 'turn_timeout: the reply took longer than a turn may take' });
  });

  it('DESIGN 5: a model call that ran into the deadline of its turn is a timeout, though its result comes first', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('one'));
    const [callId, deadline] = [driven.openCall ?? '', driven.deadline()];
    driven.wait(driven.transitionInputs().turnTimeoutMs);
    const failure = { code: 'router.provider_unavailable', message: '', details: {} };
    driven.apply({ ...header, type: 'call.failed', commandId: callId, ...actorFields(callId.slice(0, callId.lastIndexOf('-'))), callId, failure });
    driven.apply(deadline);

    expect(driven.lines.slice(3)).toEqual(['error', 'ready']);
    expect(driven.log.at(-2)).toMatchObject({ error_detail: 'turn_timeout: the reply took longer than a turn may take' });
  });

  it('DESIGN 4: a turn with an unprocessable command ends as an error, then ready', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('one'));
    driven.fail();

    expect(driven.lines.slice(3)).toEqual(['error', 'ready']);
  });

  it('leaves the plan unchanged when a transition throws', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    const plan = new CommitPlan();
    const broken = {
      ...post('x'),
      get text(): string {
        throw new Error('broken');
      },
    };

    expect(() => applyTo(plan, driven.state, broken, driven.transitionInputs())).toThrow('broken');
    expect(plan.events).toEqual([]);
    expect(plan.sessions.size).toBe(0);
  });

  it('never appends decreasing times to a log', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.wait(-60_000);
    driven.apply(post('one'));

    expect(Date.parse(driven.log[0]?.created_at ?? '')).toBe(START_MS);
  });

  it('DESIGN 7: a turn’s id has the time at which it begins, by the log, whatever the clock of its host does', () => {
    const driven = sessionWithUlids();
    driven.apply(create());
    driven.wait(-60_000);
    driven.apply(post('one'));

    expect(ulidTimeMs(turnOf(driven.openCall))).toBe(START_MS);
  });

  it('DESIGN 7: a turn that has waited for the end of another begins with an id of that time: its deltas are not those of an ended turn', () => {
    const driven = sessionWithUlids();
    driven.apply(create());
    driven.apply(post('one'));
    const { session, ...others } = driven.state?.actors ?? {};
    const waiting = { turnId: `trn_${ulid(START_MS)}`, traceId: 'a'.repeat(32), bundleHash: 'b', traceparent: null };
    driven.restore({ ...others, session: { value: 'responding', context: { ...session?.context, wanted: waiting } } });
    driven.wait(5_000);
    driven.apply(driven.resultOf('the reply of the first'));

    const endedAtMs = Date.parse(driven.log.findLast((event) => event.kind === 'status' && event.status === 'ready')?.created_at ?? '');
    expect(endedAtMs).toBe(START_MS + 5_000);
    expect(ulidTimeMs(turnOf(driven.openCall))).toBe(endedAtMs);
  });

  it('fulfils every promise of the log under any sequence of messages, results, failures, deadlines and pauses', () => {
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
          'tool' as const,
          'quiet tool' as const,
        ),
      }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const driven = new DrivenSession();
        driven.apply(create());
        for (const each of steps) driven.play(each);
        driven.finish();
        expectWholeTurns(driven.log);
      }),
      { numRuns: 300 },
    );
  });
});

/** Offsets are dense; turns never overlap; each ends in exactly one `ready`, the last event of its trace. */
function expectWholeTurns(log: readonly ConversationEvent[]): void {
  expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
  const turns = new Map<string, ConversationEvent[]>();
  for (const event of log) {
    if (event.source === 'human_agent' || event.metadata['isQuiet']) continue;
    turns.set(event.trace_id, [...(turns.get(event.trace_id) ?? []), event]);
  }
  for (const events of turns.values()) {
    const words = events.map((event) => (event.kind === 'status' ? event.status : event.kind)).join(' ');
    expect(words).toMatch(/^(user_message|tool) acknowledged typing( user_message)*( assistant_message| cancelled| error) ready$/);
  }
  // No turn begins before the previous one is ready.
  const order = log.filter((event) => event.kind === 'status' && (event.status === 'acknowledged' || event.status === 'ready'));
  order.forEach((event, index) => {
    expect(event).toMatchObject({ status: index % 2 === 0 ? 'acknowledged' : 'ready' });
  });
}
