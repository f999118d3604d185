import { describe, expect, it } from 'vitest';
import { modelOf } from '../../engine/routines/test-support/routines.ts';
import { deleteEvents, post } from '../../test-support/driven-session.ts';
import { matched, result } from '../../test-support/tool-turn.ts';

const routines = ['return', 'repair'].map((id) => modelOf(id, [{ kind: 'chat', id: 'one', chat_state: `Say how a ${id} works.` }], []));

describe('a turn that waits for a call that can not be taken back', () => {
  it.each([
    ['its message', ['How does a repair work?'], 'repair'],
    ['the newest of its messages that is like one', ['How does a repair work?', 'A return!', 'Please'], 'return'],
    ['none', ['Hm'], undefined],
  ])('rule 12: prepares the routine that is most like %s', (_, texts, likeliest) => {
    const { session, turnId, id } = matched({ routines: routines.map(({ routine }) => routine), routineModels: routines });
    for (const call of session.asked) session.judge(call.split(' ')[0] ?? '', ['ask']);
    const inferring = [...session.open.keys()][0] ?? '';
    session.infer(inferring, ['shop__refund', {}]);
    const [refund = ''] = session.open.keys();
    for (const text of texts) session.say(text, 60_000);
    expect(session.turnIds).toEqual([turnId]);
    session.tool(refund, result('refunded'));

    expect(id(1)).not.toContain(session.turnId);
    const [began] = session.rows();
    expect(began).toMatchObject({ kind: 'began' });
    expect(began?.kind === 'began' && began.likeliest).toBe(likeliest);
  });

  it.each([
    ['begins, when a forced deletion leaves its messages', 0, ['Stop!', 'Please'], 2],
    ['is dropped with its messages', -2, [], 1],
  ])('%s', (_, from, texts, turns) => {
    const { session, id } = matched();
    session.infer(id(2), ['shop__refund', {}]);
    session.say('Stop!');
    session.say('Please');
    const next = session.log.length;
    session.apply({ ...post('a note of an integration'), source: 'system', triggersTurn: false });
    session.apply(deleteEvents(next + from, true));

    expect(session.log.flatMap((event) => (event.kind === 'user_message' ? [event.text] : [])).slice(1)).toEqual(texts);
    expect(session.lines).toContain('cancelled');
    expect(session.turnIds).toHaveLength(turns);
    expect(session.lines.at(-1)).toBe(turns === 2 ? 'processing/matching' : 'ready');
  });
});
