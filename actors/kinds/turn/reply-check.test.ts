import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { guidanceOf } from '../../engine/composition/guidance-of.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { header } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';

const policies = [
  testPolicy('leak', { criticality: 'high' }),
  testPolicy('refund', { criticality: 'high' }),
  testPolicy('greet'),
  testPolicy('seen', { criticality: 'high', action: null }),
];
const documents = testEngineDocuments({ policies, batchSize: 10 });

describe('the check of a reply', () => {
  it('rule 84: is made for the policies of high criticality in force, before anything of the reply is shown', () => {
    const { session, id } = composed(['leak', 'greet', 'seen']);

    expect(session.lines.at(-1)).toBe('typing');
    expect([...session.open.values()]).toMatchObject([
      { id: id('check'), kind: 'turn-step', inputs: { call: 'check-reply', template: 'check-reply@1', reference: { policyIds: ['leak'] } } },
    ]);
    expect(session.rows().at(-1)).toMatchObject({ kind: 'reply', callId: id('reply'), text: 'the first', tokens: 12 });
  });

  it.each([[['greet']], [['seen']], [[]]])('rule 84: is not made where none of them is in force: %s', (applying) => {
    const { session } = composed(applying);

    expect(session.lines.slice(-2)).toEqual(['assistant_message the first', 'ready']);
    expect(session.rows().some(({ kind }) => kind === 'reply')).toBe(false);
  });

  it('rule 84: the reply that follows them is sent, under the id of its call', () => {
    const { session, id } = composed(['leak', 'refund']);
    session.checkReply(id('check'));

    expect(session.lines.slice(-2)).toEqual(['assistant_message the first', 'ready']);
    expect(session.log.at(-2)).toMatchObject({ id: id('reply').replace('trn_', 'evt_'), metadata: { model: 'scripted/assistant', provider: 'Scripted' } });
    expect(session.rows().at(-1)).toMatchObject({
      kind: 'check-reply',
      answer: {
        verdicts: [
          { id: 'leak', applies: true },
          { id: 'refund', applies: true },
        ],
      },
    });
    expect(session.agentStates.length).toBeGreaterThan(0);
  });

  it('DESIGN 5: rule 85: another one is composed once, knows what was missed, and stands', () => {
    const { session, id } = composed(['leak', 'refund']);
    session.checkReply(id('check'), ['refund']);
    const guidance = guidanceOf(session.rows(), documents);
    session.reply(id('second'), 'the second');
    session.apply(session.resultOf(id('second'), 'the third'));

    expect(guidance).toMatch(/A first version of this reply was not sent[^\n]*\n- When refund[^\n]*\(What was wrong: "as to refund"\)\n\n/);
    expect(guidance.match(/What was wrong/g)).toHaveLength(1);
    expect(session.lines.filter((line) => line.startsWith('assistant_message'))).toEqual(['assistant_message the second']);
    expect(session.lines.filter((line) => line === 'typing' || line === 'ready')).toEqual(['typing', 'ready']);
    expect(session.log.at(-2)?.id).toBe(id('second').replace('trn_', 'evt_'));
  });

  it('rule 85: nothing of the first one is shown while it is generated; of the second one it is', () => {
    const { session, id, opened } = composed(['leak']);
    session.checkReply(id('check'), ['leak']);

    expect(opened.inputs).toMatchObject({ isWithheld: true });
    expect(session.open.get(id('second'))?.inputs).not.toHaveProperty('isWithheld');
  });

  it('rule 85: a reply that is known to miss a policy is not sent when the second one fails', () => {
    const { session, id } = composed(['leak']);
    session.checkReply(id('check'), ['leak']);
    session.reply(id('second'), '');

    expect(session.lines.slice(-2)).toEqual(['error (engine_error: the model returned no reply)', 'ready']);
    expect(session.agentStates).toEqual([]);
  });

  it('rule 86: a malformed check is made once more, then the reply is sent as it is', () => {
    const { session, id } = composed(['leak']);
    session.reply(id('check'), '{"verdicts":[]}');
    expect([...session.open.keys()]).toEqual([id('second')]);
    session.reply(id('second'), 'none');

    expect(session.lines.slice(-2)).toEqual(['assistant_message the first', 'ready']);
    const fault = { kind: 'malformed', asked: 'check-reply', reason: expect.any(String) };
    expect(session.rows(session.turnIds[0]).slice(-3)).toMatchObject([fault, fault, { kind: 'unchecked', reason: 'malformed' }]);
  });

  it('rule 86: a failed check costs the finding, not the reply', () => {
    const { session, id, turnId } = composed(['leak']);
    const failure = { code: 'router.provider_unavailable', message: 'secret', details: {} };
    session.apply({ ...header, type: 'call.failed', commandId: id('check'), ...actorFields(turnId), callId: id('check'), failure });

    expect(session.lines.slice(-2)).toEqual(['assistant_message the first', 'ready']);
    expect(session.rows(turnId).at(-1)).toEqual({ kind: 'unchecked', reason: 'unavailable' });
  });

  it('rule 86: at the turn’s deadline the reply is sent as it is, and the check is superseded', () => {
    const { session, id, turnId } = composed(['leak']);
    session.deadline(turnId, 180_000);

    expect(session.aborted).toEqual([id('check')]);
    expect(session.lines.slice(-2)).toEqual(['assistant_message the first', 'ready']);
    expect(session.rows(turnId).at(-1)).toEqual({ kind: 'unchecked', reason: 'deadline' });
  });

  it('rule 86: a turn whose configuration can not be read any more ends at its deadline without its reply', () => {
    const { session, turnId } = composed(['leak']);
    session.isUnreadable = true;
    session.deadline(turnId, 180_000);

    expect(session.lines.slice(-2)).toEqual(['error (turn_timeout: the reply took longer than a turn may take)', 'ready']);
  });

  it('rule 86: a check has a deadline of its own', () => {
    const { session, id } = composed(['leak']);
    const { createdAtMs, inputs } = session.open.get(id('check')) ?? {};

    expect((inputs?.deadlineAtMs ?? 0) - (createdAtMs ?? 0)).toBe(20_000);
  });

  it.each([
    [[], 'a reply was checked (followed)'],
    [['leak'], 'a reply was checked (missed)'],
    [null, 'a reply was sent without its check: deadline (unchecked)'],
  ])('rule 86: the log has the outcome of a check: %s', (missed, note) => {
    const { session, id, turnId } = composed(['leak']);
    if (missed === null) session.deadline(turnId, 180_000);
    else session.checkReply(id('check'), missed);

    expect(session.notes).toContain(note);
  });

  it('rule 87: a new message cancels the turn while its reply is checked, and the reply is not sent', () => {
    const { session, id } = composed(['leak']);
    session.say('never mind');
    session.apply(session.resultOf(id('check'), JSON.stringify({ verdicts: [{ id: 1, rationale: 'r', followed: true }] })));

    expect(session.aborted).toEqual([id('check')]);
    expect(session.lines.slice(4, 8)).toEqual(['cancelled', 'ready', 'user_message never mind', 'acknowledged']);
    expect(session.lines.some((line) => line.startsWith('assistant_message'))).toBe(false);
  });

  it('rule 87: a message that joins the turn supersedes the check, and all begins anew', () => {
    const { session, id } = composed(['leak']);
    session.say('and a refund', 10);
    expect(session.aborted).toEqual([id('check')]);
    judgeAll(session, ['refund']);
    const [second = ''] = session.open.keys();
    session.reply(second, 'the second');
    const [check = ''] = session.open.keys();

    expect(session.open.get(check)?.inputs).toMatchObject({ call: 'check-reply', reference: { policyIds: ['refund'] } });
    session.checkReply(check);
    expect(session.lines.slice(-2)).toEqual(['assistant_message the second', 'ready']);
  });

  it('rule 101: a reply of before a message joined changes nothing', () => {
    const session = new EngineSession(documents);
    session.say('It leaks');
    judgeAll(session, ['leak']);
    const [reply = ''] = session.open.keys();
    session.say('and a refund', 10);
    session.apply(session.resultOf(reply, 'too late'));
    session.finish(['refund']);

    expect(session.lines.slice(-2)).toEqual(['assistant_message a reply', 'ready']);
    expect(session.rows(session.turnIds[0]).map(({ kind }) => kind)).toEqual([
      'began',
      'match',
      'match',
      'resolved',
      'began',
      'match',
      'match',
      'resolved',
      'reply',
      'check-reply',
    ]);
  });

  it.each([0, 1, 2])('rule 101: a repeated or late result changes nothing, at each moment (%i)', (moment) => {
    const { session, id, turnId } = composed(['leak']);
    const again = () => {
      session.apply(session.resultOf(id('reply'), 'again'));
      session.apply(session.resultOf(id('check'), 'no JSON'));
    };
    if (moment === 0) session.apply(session.resultOf(id('reply'), 'again'));
    session.checkReply(id('check'), ['leak']);
    if (moment === 1) again();
    session.reply(id('second'), 'the second');
    if (moment === 2) again();

    expect(session.lines.filter((line) => line.startsWith('assistant_message'))).toEqual(['assistant_message the second']);
    expect(session.rows(turnId).map(({ kind }) => kind)).toEqual(['began', 'match', 'match', 'resolved', 'reply', 'check-reply']);
  });
});

function judgeAll(session: EngineSession, applying: readonly string[]): void {
  for (const call of session.asked) session.judge(call.split(' ')[0] ?? '', applying);
}

/** A turn whose matching found these policies, and whose first reply has come. */
function composed(applying: readonly string[]) {
  const session = new EngineSession(documents);
  session.say('It leaks', 60_000);
  const { turnId } = session;
  judgeAll(session, applying);
  const [opened] = session.open.values();
  if (opened === undefined || opened.kind !== 'router-call') throw new Error('no reply is composed');
  session.reply(opened.id, 'the first');
  const number = Number(opened.id.split('-').at(-1));
  const id = (which: 'reply' | 'check' | 'second') => `${turnId}-${number + { reply: 0, check: 1, second: 2 }[which]}`;
  return { session, turnId, id, opened };
}
