import { describe, expect, it } from 'vitest';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { deleteEvents } from '../../test-support/driven-session.ts';
import type { EngineSession } from '../../test-support/engine-session.ts';
import { matched, result, toolCallsIn } from '../../test-support/tool-turn.ts';

type Turn = ReturnType<typeof matched>;

const REFUNDED = { tool_id: 'shop:refund', arguments: { id: 1 }, result: { data: 'refunded', metadata: {} } };
const UNKNOWN = { tool_id: 'shop:refund', arguments: { id: 1 }, result: { data: { error: 'outcome_unknown' }, metadata: { error: expect.any(String) } } };
const SENT = { tool_id: 'shop:order', arguments: {}, result: { data: 'sent', metadata: {} } };

const cancel = ({ session }: Turn) => session.say('Never mind');
const expire = ({ session, turnId }: Turn) => session.deadline(turnId, 180_000);
const poison = ({ session }: Turn) => session.poison();
const forceDeletion = ({ session }: Turn) => session.apply(deleteEvents(0, true));

describe('a turn that ends before all tools of a batch have settled', () => {
  it.each([
    ['a message that cancels it', cancel, 'cancelled'],
    ['its deadline', expire, 'error'],
    ['a command that could not be applied', poison, 'error'],
    ['a forced deletion', forceDeletion, 'cancelled'],
  ])('rule 69: by %s: the log has the results so far, and the call that may be made again leaves nothing', (_, end, status) => {
    const turn = begun();
    turn.session.tool(turn.id(3), result('refunded'));
    end(turn);

    expect(endOf(turn)).toEqual(['tool', status, 'ready']);
    expect(toolCallsIn(turn.session)).toEqual([[REFUNDED]]);
    expect(turn.session.aborted).toEqual([turn.id(4)]);
  });

  it.each([
    ['its deadline', expire, 'error'],
    ['a command that could not be applied', poison, 'error'],
    ['a forced deletion', forceDeletion, 'cancelled'],
  ])('rule 69: by %s while a call runs that can not be taken back: its outcome is not known, and a late one changes nothing', (_, end, status) => {
    const turn = begun();
    turn.session.tool(turn.id(4), result('sent'));
    end(turn);
    turn.session.tool(turn.id(3), result('refunded'));

    expect(endOf(turn)).toEqual(['tool', status, 'ready']);
    expect(toolCallsIn(turn.session)).toEqual([[UNKNOWN, SENT]]);
    const last = turn.session.rows(turn.turnId).at(-1);
    // With the events at whose offsets they stood.
    if (end === forceDeletion) expect(last).toBeUndefined();
    else expect(last).toMatchObject({ kind: 'tool', key: 'tool-1-1', call: { hasFailed: true } });
  });

  it.each([
    ['its deadline', ({ session, turnId }: Turn) => session.deadline(turnId, 30_000)],
    ['a command that could not be applied', poison],
    ['a forced deletion', forceDeletion],
  ])('rule 69: by %s, cancelled before: the same', (_, end) => {
    const turn = begun();
    turn.session.tool(turn.id(4), result('sent'));
    cancel(turn);
    expect(toolCallsIn(turn.session)).toEqual([]);
    end(turn);

    expect(endOf(turn)).toEqual(['tool', 'cancelled', 'ready']);
    expect(toolCallsIn(turn.session)).toEqual([[UNKNOWN, SENT]]);
  });

  it('rule 69: ends also when its calls can not be named any more, with the results so far', () => {
    const policies = [testPolicy('ask', { tools: ['shop:order', 'shop:refund'] })];
    const turn = begun({ policies });
    turn.session.tool(turn.id(4), result('sent'));
    policies.length = 0;
    poison(turn);

    expect(endOf(turn)).toEqual(['tool', 'error', 'ready']);
    expect(toolCallsIn(turn.session)).toEqual([[SENT]]);
  });

  it('rule 104: a message that joins: later calls of the turn see the results so far, and what was done is not done again', () => {
    const { session, turnId, id } = begun();
    session.tool(id(3), result('refunded'));
    session.say('and the invoice', 10);

    expect(session.turnId).toBe(turnId);
    expect(toolCallsIn(session)).toEqual([[REFUNDED]]);
    const [rematch] = session.open.values();
    expect(session.lines.slice(-2)).toEqual(['tool ', 'processing/matching']);
    expect(rematch?.inputs).toMatchObject({ upToOffset: session.log.at(-1)?.offset });
    session.judge(id(5), ['ask']);
    session.infer(id(6), ['shop__refund', { id: 1 }], ['shop__order', {}]);
    expect([...session.open.values()].map(({ inputs }) => inputs)).toEqual([expect.objectContaining({ toolId: 'shop:order' })]);
    session.tool(id(7), result('sent'));
    session.finish();
    expect(toolCallsIn(session)).toEqual([[REFUNDED], [SENT]]);
    expect(session.lines.at(-1)).toBe('ready');
  });
});

/** `refund` and `order` run side by side. */
function begun(changes: Parameters<typeof matched>[0] = {}): Turn {
  const turn = matched(changes);
  turn.session.infer(turn.id(2), ['shop__refund', { id: 1 }], ['shop__order', {}]);
  return turn;
}

/** The turn's own events from the `tool` event on. */
function endOf({ session }: { session: EngineSession }): string[] {
  const [first] = session.log;
  const words = session.log.flatMap((event) => (event.trace_id === first?.trace_id ? [event.kind === 'status' ? event.status : event.kind] : []));
  return words.slice(-3);
}
