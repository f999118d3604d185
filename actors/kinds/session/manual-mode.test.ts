import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CommandOf } from '#bus/messages/session.ts';
import { initialTransition, transition } from '../../runtime/apply/transition.ts';
import { COALESCE_MS, create, header, post } from '../../test-support/driven-session.ts';
import { matched, result } from '../../test-support/tool-turn.ts';
import { sessionMachine } from './machine.ts';
import { postedEvent } from './posted-event.ts';
import type { SessionContext, SessionEvent } from './types.ts';

const patch = (mode: 'auto' | 'manual'): CommandOf<'session.patch'> => ({
  ...{ ...header, type: 'session.patch', commandId: post('').commandId, mode },
  ...{ setMetadata: {}, unsetMetadata: [], upsertLabels: [], removeLabels: [] },
});

const messagesIn = ({ lines }: { lines: string[] }) => lines.filter((line) => line.startsWith('user_message'));

describe('a turn that waits to begin', () => {
  /** A message waits for a call that must not be repeated. */
  function waiting() {
    const { session, id } = matched();
    session.infer(id(2), ['shop__refund', {}]);
    session.say('I want a refund', 60_000);
    return { session, settle: () => session.tool(id(3), result('refunded')) };
  }

  it('never begins once the session is in manual mode: its messages stay in the log, and nothing is acknowledged', () => {
    const { session, settle } = waiting();
    session.apply(patch('manual'));
    expect(session.state?.record.mode).toBe('manual');
    session.say('Any human?');
    session.apply({ ...post('I am here.'), source: 'human_agent', triggersTurn: false });
    settle();

    expect(session.lines.filter((line) => line === 'acknowledged')).toHaveLength(1);
    expect(session.lines.slice(-3)).toEqual(['tool ', 'cancelled', 'ready']);
    expect(messagesIn(session)).toHaveLength(3);
    expect([session.turnIds.length, session.open.size]).toEqual([1, 0]);
    expect(session.state?.actors['session']).toMatchObject({ value: 'idle', context: { mode: 'manual', wanted: null } });
  });

  it.each(['before', 'after'])(
    'stays dropped when the session is handed back %s the end of the wait; the next message is answered with all before it',
    (when) => {
      const { session, settle } = waiting();
      session.apply(patch('manual'));
      session.say('Any human?');
      if (when === 'before') session.apply(patch('auto'));
      settle();
      if (when === 'after') session.apply(patch('auto'));
      expect([session.lines.at(-1), session.turnIds.length]).toEqual(['ready', 1]);
      session.say('And now?', 60_000);

      expect(session.turnIds).toHaveLength(2);
      expect(session.lines.slice(-3)).toEqual(['user_message And now?', 'acknowledged', 'processing/matching']);
    },
  );

  it('begins after a patch that leaves the mode alone', () => {
    const { session, settle } = waiting();
    session.apply({ ...patch('auto'), title: 'Refunds' });
    settle();

    expect(session.turnIds).toHaveLength(2);
  });

  it.each(['turn', 'run'])('that a host of the release before has kept in manual mode never begins: the session is idle after its %s', (what) => {
    const wanted = { turnId: 'trn_2', traceId: '2'.repeat(32), bundleHash: 'b', traceparent: null };
    const ids = what === 'turn' ? { turnId: 'trn_1', runId: null } : { turnId: null, runId: 'run_1' };
    const stored = { value: what === 'turn' ? 'responding' : 'running', context: { ...idle().context, ...ids, mode: 'manual' as const, wanted } };
    for (const patches of [[], [patch('auto')]]) {
      let state = sessionMachine.resolveState(stored);
      for (const command of patches) [state] = transition(sessionMachine, state, { type: 'session.patch', command, problem: null });
      const settled = what === 'turn' ? { type: 'turn.settled' as const, turnId: 'trn_1' } : { type: 'run.settled' as const, runId: 'run_1' };
      const [next, actions] = transition(sessionMachine, state, { ...settled, nextTurnId: 'trn_3' });
      expect(actions).toEqual([]);
      expect(next).toMatchObject({ value: 'idle', context: { wanted: null, turnId: null, runId: null } });
    }
  });
});

type Command = 'manual' | 'auto' | 'message' | 'injected tool' | 'run' | 'settled' | 'settled, by a tool to manual';

describe('any session', () => {
  const command = fc.constantFrom<Command>(
    'manual',
    'auto',
    'message',
    'message',
    'injected tool',
    'run',
    'settled',
    'settled',
    'settled, by a tool to manual',
  );

  it('DESIGN 5: begins no turn between a patch to manual and one to auto, whatever waits, and is idle when all has settled', () => {
    let begun = 0;
    fc.assert(
      fc.property(
        fc.array(fc.record({ what: command, mustSettle: fc.boolean(), afterMs: fc.constantFrom(0, COALESCE_MS + 1) }), { maxLength: 30 }),
        (given) => {
          const session = new Driven();
          for (const { what, mustSettle, afterMs } of given) session.meet(what, mustSettle, afterMs);
          for (const _ of given) session.meet('settled', false, 0);
          expect(session.state).toMatchObject({ value: 'idle', context: { wanted: null, queue: [] } });
          begun += session.begun;
        },
      ),
      { numRuns: 500 },
    );
    expect(begun).toBeGreaterThan(100);
  });
});

function idle(): { value: string; context: SessionContext } {
  const [absent] = initialTransition(sessionMachine);
  const [state] = transition(sessionMachine, absent, { type: 'session.create', command: create(), greeting: null });
  return state;
}

/** A session's machine with turns and runs that end when they are asked to. */
class Driven {
  state = sessionMachine.resolveState(idle());
  begun = 0;
  #isTakenOver = false;
  #numbers = 0;
  #atMs = 0;

  meet(what: Command, turnMustSettle: boolean, afterMs: number): void {
    this.#atMs += afterMs;
    this.#numbers += 1;
    const { turnId, runId } = this.state.context;
    if (what === 'manual' || what === 'auto') {
      this.#isTakenOver = what === 'manual';
      this.#send({ type: 'session.patch', command: patch(what), problem: null });
    } else if (what === 'run') this.#send({ type: 'run.start', runId: `run_${this.#numbers}`, ephemeral: false });
    else if (what === 'message' || what === 'injected tool') this.#post(what, turnMustSettle);
    else if (turnId !== null) {
      this.#send({ type: 'turn.settled', turnId, nextTurnId: `trn_${this.#numbers}` });
      if (what === 'settled, by a tool to manual') this.#send({ type: 'mode.asked', mode: 'manual' });
    } else if (runId !== null) this.#send({ type: 'run.settled', runId, nextTurnId: `trn_${this.#numbers}` });
  }

  #post(what: 'message' | 'injected tool', turnMustSettle: boolean): void {
    const posted = { ...postedEvent(post('hello')), joins: what === 'message' };
    const about = { coalesceMs: COALESCE_MS, newTurnId: `trn_${this.#numbers}`, turnMustSettle, offset: this.#numbers, check: null };
    this.#send({ type: 'event.post', post: posted, atMs: this.#atMs, ...about });
  }

  #send(event: SessionEvent): void {
    const [next, actions] = transition(sessionMachine, this.state, event);
    const begun = actions.filter(({ type }) => type === 'runTurn').length;
    if (this.#isTakenOver) expect(begun, `turns that begin in manual mode by ${event.type}`).toBe(0);
    this.begun += begun;
    // As it is stored.
    this.state = sessionMachine.resolveState(JSON.parse(JSON.stringify({ value: next.value, context: next.context })));
  }
}
