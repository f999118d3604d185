import { describe, expect, it } from 'vitest';
import { clientEvent, create, DrivenSession, deleteEvents, patchEvent, post, toolEvent } from '../../test-support/driven-session.ts';

/** A session whose first turn has ended: five events. */
function afterTurn(): DrivenSession {
  const session = new DrivenSession();
  session.apply(create());
  session.apply(post('one'));
  session.finish();
  expect(session.lines).toEqual(['user_message one', 'acknowledged', 'typing', 'assistant_message the last reply', 'ready']);
  return session;
}

const codeOf = (reply: ReturnType<DrivenSession['apply']>) => (reply?.ok === false ? reply.code : reply?.ok);

describe('a deletion of events', () => {
  it('deletes from the first event of a trace to the end of the log, and offsets go on behind it', () => {
    const session = afterTurn();
    session.apply(post('two'));
    session.finish();

    expect(session.apply(deleteEvents(5))).toEqual({ ok: true, value: {} });
    expect(session.log.map(({ offset }) => offset)).toEqual([0, 1, 2, 3, 4]);
    session.apply(post('three'));
    expect(session.log.at(5)).toMatchObject({ offset: 10, text: 'three' });
    expect(session.state?.record.last_offset).toBe(12);
  });

  it.each([1, 4])('is refused at offset %i, in the middle of a trace, also during the turn', (offset) => {
    const session = afterTurn();
    const refused = session.apply(deleteEvents(offset));
    expect(refused).toMatchObject({ ok: false, code: 'request.invalid', message: expect.stringContaining(`the event at ${offset} is not the first`) });
    session.apply(post('two'));
    expect(codeOf(session.apply(deleteEvents(offset)))).toBe('request.invalid');
    expect(session.log).toHaveLength(8);
  });

  it('is refused at an event of its own trace in the middle of a turn, which would keep its message without its reply', () => {
    const session = new DrivenSession();
    session.apply(create());
    session.apply(post('one'));
    session.apply(clientEvent({ kind: 'custom', data: 1 }));
    session.finish();
    expect(session.lines[3]).toMatch(/^custom/);

    expect(session.apply(deleteEvents(3))).toMatchObject({
      ok: false,
      code: 'request.invalid',
      message: expect.stringContaining('the event at 4 is not the first'),
    });
    expect(session.log).toHaveLength(6);
  });

  it('is refused during a turn', () => {
    const session = afterTurn();
    session.apply(post('two'));
    expect(codeOf(session.apply(deleteEvents(0)))).toBe('request.conflict');
    expect(session.log).toHaveLength(8);
    session.finish();
    expect(session.lines.at(-1)).toBe('ready');
  });

  it('that is forced cancels the turn as a message does, and keeps what the cancelled turn appends', () => {
    const session = afterTurn();
    session.apply(post('two'));
    const call = session.openCall ?? '';
    expect(codeOf(session.apply(deleteEvents(5, true)))).toBe(true);

    expect(session.aborted).toEqual([call]);
    expect(session.lines.slice(5)).toEqual(['cancelled', 'ready']);
    expect(session.log.slice(5).map(({ offset }) => offset)).toEqual([8, 9]);
    session.apply(session.resultOf('late', call));
    expect(session.lines.slice(5)).toEqual(['cancelled', 'ready']);
    expect(codeOf(session.apply(deleteEvents(6)))).toBe(true);
    expect(session.log).toHaveLength(5);
  });

  it('of nothing changes nothing, also during a turn', () => {
    const session = afterTurn();
    expect(codeOf(session.apply(deleteEvents(5)))).toBe(true);
    session.apply(post('two'));
    expect(codeOf(session.apply(deleteEvents(99, true)))).toBe(true);
    expect(session.openCall).not.toBeNull();
    session.finish();
    expect(codeOf(session.apply(deleteEvents(0)))).toBe(true);
    expect(codeOf(session.apply(deleteEvents(0)))).toBe(true);
    expect(session.log).toEqual([]);
  });

  it('is refused for a session that there is not, and for one that is deleted', () => {
    const session = new DrivenSession();
    expect(codeOf(session.apply(deleteEvents(0)))).toBe('session.not_found');
    expect(codeOf(session.apply(patchEvent('evt_1', {})))).toBe('session.not_found');
  });
});

describe('a patch of an event', () => {
  it('changes its metadata and nothing else, removals last, also during a turn', () => {
    const session = afterTurn();
    session.apply(toolEvent({ triggersTurn: false, metadata: { by: 'crm', old: 1 } }));
    session.apply(post('two'));
    const event = session.log[5];
    const reply = session.apply(patchEvent(event?.id ?? '', { rating: 5, old: 2 }, ['old']));

    expect(reply).toEqual({ ok: true, value: { event: { ...event, metadata: { by: 'crm', rating: 5 } } } });
    expect(session.log[5]).toEqual({ ...event, metadata: { by: 'crm', rating: 5 } });
    expect(session.openCall).not.toBeNull();
  });

  it('is refused for an event that there is not, and beyond 1 MiB of metadata', () => {
    const session = afterTurn();
    const id = session.log[0]?.id ?? '';
    expect(codeOf(session.apply(patchEvent('evt_unknown', { a: 1 })))).toBe('request.not_found');
    for (const key of ['a', 'b', 'c']) session.apply(patchEvent(id, { [key]: 'x'.repeat(300_000) }));
    expect(codeOf(session.apply(patchEvent(id, { d: 'x'.repeat(300_000) })))).toBe('request.invalid');
    expect(codeOf(session.apply(patchEvent(id, {}, ['a'])))).toBe(true);
    session.apply(deleteEvents(0));
    expect(codeOf(session.apply(patchEvent(id, { a: 1 })))).toBe('request.not_found');
  });
});
