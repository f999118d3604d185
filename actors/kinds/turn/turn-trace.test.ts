import { describe, expect, it } from 'vitest';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import type { RenderDeps } from '../../effects/render-deps.ts';
import { turnToolCall } from '../../effects/turn-tool-call.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { relationshipGraph } from '../../engine/relationships/relationship-graph.ts';
import { header, post, START_MS } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import { matched, result } from '../../test-support/tool-turn.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const policies = ['leak', 'refund', 'greet'].map((id) => testPolicy(id));

function begun() {
  const session = new EngineSession(testEngineDocuments({ policies, batchSize: 2 }));
  session.apply({ ...post('It leaks'), traceparent: PARENT });
  return session;
}

const shapeOf = ({ ended }: EngineSession) => ended.map(({ kind, id, partOf = null, outcome }) => ({ kind, id, partOf, outcome }));
const contextsOf = (session: EngineSession) => [...session.open.values()].map(({ inputs }) => inputs.traceparent);

describe('the trace of a turn with an engine', () => {
  it('has a planning, with the questions below it and the reply beside it', () => {
    const session = begun();
    const { turnId } = session;
    const ofTurn = contextBelow(PARENT, turnId);
    const ofPlanning = contextBelow(ofTurn, `${turnId}#plan-1`);
    expect(contextsOf(session)).toEqual([ofPlanning, ofPlanning]);
    session.pause(300);
    session.judge(`${turnId}-1`, ['leak']);
    // Asked once more, below the same planning.
    session.reply(`${turnId}-2`, 'no JSON');
    expect(contextsOf(session)).toEqual([ofPlanning]);
    session.judge(`${turnId}-3`, ['greet']);
    expect(contextsOf(session)).toEqual([ofTurn]);
    session.pause(200);
    session.finish();

    expect(shapeOf(session)).toEqual([
      { kind: 'plan', id: `${turnId}#plan-1`, partOf: turnId, outcome: 'completed' },
      { kind: 'turn', id: turnId, partOf: null, outcome: 'completed' },
    ]);
    const [planning, turn] = session.ended;
    expect([planning?.startedAtMs, planning?.endedAtMs, turn?.endedAtMs].map((atMs) => (atMs ?? 0) - START_MS)).toEqual([0, 300, 500]);
    const { attributes, events = [] } = planning?.details?.('off') ?? {};
    expect(attributes).toMatchObject({
      'switchyard.iteration': 1,
      'switchyard.calls': 3,
      'switchyard.faults': 1,
      'switchyard.policies.applied': ['leak', 'greet'],
    });
    expect(events.map(({ name, attributes: of }) => [name, of?.['switchyard.policy.id'], of?.['switchyard.batch.class']])).toEqual([
      ['policy.matched', 'leak', 'actionable'],
      ['policy.matched', 'greet', 'actionable'],
    ]);
    expect(turn?.details?.('off')).toMatchObject({ attributes: { 'switchyard.calls': 3 }, events: [{ name: 'ttfm', atMs: START_MS + 500 }] });
  });

  it('passes on what its caller sent beside the traceparent, to tools alone, also when it had to wait', async () => {
    const { session, turnId } = matched();
    session.infer(`${turnId}-2`, ['shop__refund', {}]);
    const carried = { tracestate: 'vendor=1', baggage: 'tenant=acme' };
    // The running call must settle first, so this message's turn waits.
    session.pause(60_000);
    session.apply({ ...post('And the other one?'), traceparent: PARENT, carried });
    session.tool(`${turnId}-3`, result({}));
    const next = session.turnId;
    expect(next).not.toBe(turnId);
    expect([...session.open.values()].map(({ inputs }) => inputs.carried)).toEqual([undefined]);
    session.judge(`${next}-1`, ['ask']);
    session.infer(`${next}-2`, ['shop__order', {}]);

    const [call] = session.open.values();
    expect(call).toMatchObject({ kind: 'turn-tool-call', inputs: { carried } });
    const rows = session.rows(next).map((body, seq) => ({ seq, body }));
    const deps = { turns: { staged: async () => new Map([[next, rows]]) } } as unknown as RenderDeps;
    expect(await turnToolCall.render(call as never, false, deps)).toMatchObject({ type: 'call', carried });
  });

  it('has the reasons only as TRACE_CONTENT allows', () => {
    const session = begun();
    session.finish(['leak']);
    const [planning] = session.ended;
    const reasonsAt = (content: 'off' | 'redacted' | 'full') =>
      planning?.details?.(content).events.map(({ attributes }) => attributes?.['switchyard.rationale']);

    expect([reasonsAt('off'), reasonsAt('redacted'), reasonsAt('full')]).toEqual([[undefined], ['[15 characters]'], ['because of leak']]);
    expect(JSON.stringify(planning?.details?.('redacted'))).not.toContain('because');
  });

  it('names what relationships have dropped', () => {
    const priorities = [{ higher: 'policy:refund', over: 'policy:leak', over_all_routines: false }];
    const relationships = relationshipGraph({ policies, routines: [] }, { priorities, entailments: [] });
    const session = new EngineSession(testEngineDocuments({ policies, relationships }));
    session.say('It leaks');
    session.finish(['leak', 'refund']);
    const dropped = session.ended[0]?.details?.('off').events.filter(({ name }) => name === 'policy.dropped');

    expect(dropped).toMatchObject([{ attributes: { 'switchyard.entity': 'policy:leak', 'switchyard.resolution': 'deprioritized' } }]);
  });

  it('has one planning before tools are called, and another behind them', () => {
    const { session, turnId, id } = matched({ reevaluationTools: ['shop:order'] });
    session.infer(id(2), ['shop__order', { id: 7 }]);
    const [call] = session.open.values();
    expect(call?.kind).toBe('turn-tool-call');
    session.tool(call?.id ?? '', result({ state: 'shipped' }));
    session.finish();

    expect(shapeOf(session).map(({ kind, id: seed }) => [kind, seed])).toEqual([
      ['plan', `${turnId}#plan-1`],
      ['plan', `${turnId}#plan-4`],
      ['turn', turnId],
    ]);
    const [first, second, turn] = session.ended.map(({ details }) => details?.('off').attributes);
    expect(first).toMatchObject({ 'switchyard.iteration': 1, 'switchyard.calls': 2, 'switchyard.tools.inferred': ['shop:order'] });
    expect(second).toMatchObject({ 'switchyard.iteration': 2, 'switchyard.policies.applied': ['ask'] });
    expect(turn).toMatchObject({ 'switchyard.tools.called': 1 });
  });

  it('ends a planning with a message that joins, and the last one with its turn', () => {
    const session = begun();
    const { turnId } = session;
    session.say('and I want a refund', 10);
    session.apply({ ...header, type: 'turn.deadline', commandId: 'late', turnId });

    expect(shapeOf(session)).toEqual([
      { kind: 'plan', id: `${turnId}#plan-1`, partOf: turnId, outcome: 'cancelled' },
      { kind: 'plan', id: `${turnId}#plan-2`, partOf: turnId, outcome: 'failed' },
      { kind: 'turn', id: turnId, partOf: null, outcome: 'failed' },
    ]);
  });

  it('has no planning without an engine, and says when a preamble was shown', () => {
    const session = new EngineSession(null);
    session.hasPreambles = true;
    session.say('Hello');
    const { turnId } = session;
    session.preamble(`${turnId}-preamble-1`, 'One moment.', 200);
    session.pause(700);
    session.finish();

    expect(session.ended.map(({ kind }) => kind)).toEqual(['turn']);
    const events = session.ended[0]?.details?.('off').events.map(({ name, atMs }) => [name, atMs - (session.ended[0]?.startedAtMs ?? 0)]);
    expect(events).toEqual([
      ['preamble.emitted', 200],
      ['ttfm', 200],
    ]);
  });
});
