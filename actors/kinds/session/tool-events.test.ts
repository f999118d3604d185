import { describe, expect, it } from 'vitest';
import { COALESCE_MS, create, DrivenSession, post, toolEvent } from '../../test-support/driven-session.ts';
import { runActor } from '../run/actor.ts';
import { decodeSnapshot } from '../snapshots.ts';
import { sessionActor } from './actor.ts';

describe('an injected tool event', () => {
  it('is refused by a session that does not exist', () => {
    expect(new DrivenSession().apply(toolEvent())).toMatchObject({ ok: false, code: 'session.not_found' });
  });

  it('is one tool event of the system, with all that was sent', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    const command = toolEvent({ triggersTurn: false, metadata: { by: 'crm', idempotency_key: 'k' } });
    const reply = driven.apply(command);

    const result = { data: { state: 'shipped' }, metadata: { source: 'crm' } };
    const fields = { source: 'system', trace_id: command.traceId, metadata: { by: 'crm', idempotency_key: 'k' } };
    expect(driven.log).toMatchObject([{ ...fields, kind: 'tool', offset: 0, tool_calls: [{ tool_id: 'shop:order', arguments: { id: 7 }, result }] }]);
    expect(reply).toEqual({ ok: true, value: { event: driven.log[0] } });
    expect(driven.openCall).toBeNull();
  });

  it('keeps a result that is null', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(toolEvent({ triggersTurn: false, result: null }));

    expect(driven.log[0]).toMatchObject({ tool_calls: [{ result: { data: null } }] });
  });

  it('begins a turn under its own trace when it triggers processing', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(toolEvent());
    driven.apply(driven.resultOf('It was shipped.'));

    expect(driven.lines).toEqual(['tool ', 'acknowledged', 'typing', 'assistant_message It was shipped.', 'ready']);
    expect(new Set(driven.log.map((event) => event.trace_id)).size).toBe(1);
  });

  it('cancels the running turn, however recent its message, and the next turn runs', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('where is it?'));
    const first = driven.openCall;
    driven.apply(toolEvent());

    expect(driven.lines.slice(3)).toEqual(['cancelled', 'ready', 'tool ', 'acknowledged', 'typing']);
    expect(driven.log[4]?.trace_id).toBe(driven.log[0]?.trace_id);
    expect(driven.log[5]?.trace_id).not.toBe(driven.log[0]?.trace_id);
    expect(driven.aborted).toEqual([first]);
    expect(driven.upToOffset).toBeGreaterThan(4);
  });

  it('leaves the running turn alone when it triggers nothing', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('where is it?'));
    const first = driven.openCall;
    driven.apply(toolEvent({ triggersTurn: false }));

    expect(driven.lines.slice(3)).toEqual(['tool ']);
    expect(driven.log[3]?.trace_id).not.toBe(driven.log[0]?.trace_id);
    expect({ openCall: driven.openCall, aborted: driven.aborted }).toEqual({ openCall: first, aborted: [] });
  });

  it('is joined by a message that follows at once', () => {
    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(toolEvent());
    driven.wait(COALESCE_MS);
    driven.apply(post('and now?'));

    expect(driven.lines).toEqual(['tool ', 'acknowledged', 'typing', 'user_message and now?']);
  });

  it('runs nothing in manual mode', () => {
    const driven = new DrivenSession();
    driven.apply({ ...create(), mode: 'manual' });
    driven.apply(toolEvent());

    expect(driven.lines).toEqual(['tool ']);
    expect(driven.openCall).toBeNull();
  });
});

describe('a session that an older release stored', () => {
  /** Copied from a store of the release before, of session machine 2, turn machine 1, run machine 1. */
  const stored = {
    v: 20_101,
    session: {
      value: 'responding',
      context: { mode: 'auto', ephemeral: false, isOver: false, turnId: 'trn_1', lastMessageAtMs: 1_000, runId: null, queue: [], wanted: null },
    },
    turn: {
      ...{ traceId: '1'.repeat(32), bundleHash: 'bundle', traceparent: null, startedAtMs: 1_000 },
      ...{ value: 'composing', context: { turnId: 'trn_1', deadlineAtMs: Date.UTC(2100, 0, 1), callNo: 1 } },
    },
    run: null,
  };

  it('DESIGN 5: goes on, and takes the commands of this release', () => {
    const actors = decodeSnapshot({ id: 'ses_1', partition: 1, snapshot: stored });
    expect(actors[runActor.name]).toBeNull();
    expect(actors[sessionActor.name]).toMatchObject(stored.session);

    const driven = new DrivenSession();
    driven.apply(create());
    driven.apply(post('before the upgrade'));
    driven.restore(actors);
    driven.apply(toolEvent());
    driven.apply(driven.resultOf('after it'));

    expect(driven.lines.slice(3)).toEqual(['cancelled', 'ready', 'tool ', 'acknowledged', 'typing', 'assistant_message after it', 'ready']);
  });
});
