import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { EngineDocuments } from '../../engine/engine-documents.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { header } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';

const THREE = ['leak', 'refund', 'greet'];

describe('a turn of an agent with policies', () => {
  it('rule 100: matches side by side, stages each answer, and composes when the last has come', () => {
    const session = begun();
    expect(session.lines).toEqual(['user_message It leaks', 'acknowledged', 'processing/matching']);
    expect(session.asked).toEqual([`${session.turnId}-1 [leak refund]`, `${session.turnId}-2 [greet]`]);

    session.judge(`${session.turnId}-2`, []);
    expect(session.lines.at(-1)).toBe('processing/matching');
    session.judge(`${session.turnId}-1`, ['leak']);
    expect([...session.open.values()]).toEqual([expect.objectContaining({ id: `${session.turnId}-3`, kind: 'router-call' })]);
    session.finish();

    expect(session.lines.slice(3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.rows().map(({ kind }) => kind)).toEqual(['began', 'match', 'match', 'resolved']);
    expect(session.rows().at(-1)).toMatchObject({ policies: [{ id: 'leak', rationale: 'because of leak' }] });
    expect(session.rows()[1]).toMatchObject({ key: '1/actionable-2', model: 'scripted/assistant', tokens: 12, ms: 0 });
  });

  it('rule 101: takes results in any order, and both in one commit', () => {
    const [first, second, third] = [begun(), begun(), begun()];
    const judged = (session: EngineSession, order: readonly number[]) => {
      for (const number of order) session.judge(`${session.turnId}-${number}`, ['refund']);
      session.finish();
      return { lines: session.lines, resolved: session.rows().at(-1) };
    };
    third.apply(third.resultOf(`${third.turnId}-1`, verdicts(false, true)), third.resultOf(`${third.turnId}-2`, verdicts(false)));
    third.finish();

    expect(judged(second, [2, 1])).toEqual(judged(first, [1, 2]));
    expect({ lines: third.lines, resolved: third.rows().at(-1) }).toEqual({ lines: first.lines, resolved: expect.objectContaining({ kind: 'resolved' }) });
    expect(third.rows().filter(({ kind }) => kind === 'match')).toHaveLength(2);
  });

  it('rule 101: counts a repeated or late result once', () => {
    const session = begun();
    const id = `${session.turnId}-1`;
    session.judge(id, ['leak']);
    for (let repeat = 0; repeat < 2; repeat += 1) session.apply(session.resultOf(id, verdicts(true, true)));
    session.judge(`${session.turnId}-2`, []);
    session.apply(session.resultOf(id, verdicts(true, true)));
    session.finish();

    expect(session.rows().map(({ kind }) => kind)).toEqual(['began', 'match', 'match', 'resolved']);
    expect(session.rows().at(-1)).toMatchObject({ policies: [{ id: 'leak' }] });
  });

  it('rule 102: asks once more after a malformed answer, then fails', () => {
    const session = begun();
    session.reply(`${session.turnId}-1`, '{"verdicts":[]}');
    expect(session.asked).toEqual([`${session.turnId}-2 [greet]`, `${session.turnId}-3 [leak refund]`]);
    const { turnId } = session;
    session.reply(`${turnId}-3`, 'no JSON');

    expect(session.open.size).toBe(0);
    expect(session.aborted).toEqual([`${turnId}-2`]);
    expect(session.lines.slice(-2)).toEqual(['error (engine_error: the model gave no answer that can be read)', 'ready']);
    const about = { kind: 'malformed', asked: 'match', key: '1/actionable-1', model: 'scripted/assistant', tokens: 12 };
    expect(session.rows(turnId).slice(1)).toEqual([
      { ...about, ms: 0, reason: expect.stringContaining('lacks item 1 of 2') },
      { ...about, ms: 0, reason: expect.stringContaining('JSON') },
    ]);
  });

  it('rule 102: goes on after one malformed answer', () => {
    const session = begun();
    session.reply(`${session.turnId}-1`, '');
    session.finish(['leak']);

    expect(session.lines.slice(-2)).toEqual(['assistant_message a reply', 'ready']);
  });

  it('rule 103: a failed call fails the turn, and the others are superseded', () => {
    const session = begun();
    const { turnId } = session;
    const failure = { code: 'router.provider_unavailable', message: 'secret', details: {} };
    session.apply({ ...header, type: 'call.failed', commandId: `${turnId}-2`, ...actorFields(turnId), callId: `${turnId}-2`, failure });

    expect(session.open.size).toBe(0);
    expect(session.aborted).toEqual([`${turnId}-1`]);
    expect(session.lines.slice(-2)).toEqual(['error (engine_error: the model call failed (router.provider_unavailable))', 'ready']);
  });

  it('rule 104: begins anew when a message joins, and earlier answers no longer count', () => {
    const session = begun();
    const { turnId } = session;
    session.judge(`${turnId}-1`, ['leak']);
    session.say('and I want a refund', 10);
    expect(session.aborted).toEqual([`${turnId}-2`]);
    expect(session.asked).toEqual([`${turnId}-3 [leak refund]`, `${turnId}-4 [greet]`]);
    session.judge(`${turnId}-3`, ['refund']);
    session.judge(`${turnId}-4`, []);
    session.say('now', 10);
    expect(session.aborted).toEqual([`${turnId}-2`, `${turnId}-5`]);
    session.finish(['greet']);

    const statuses = session.lines.filter((line) => !line.startsWith('user_message'));
    expect(statuses).toEqual(['acknowledged', 'processing/matching', 'typing', 'assistant_message a reply', 'ready']);
    expect(session.rows().at(-1)).toMatchObject({ policies: [{ id: 'greet' }] });
  });

  it.each(['cancel', 'deadline'] as const)('rule 105: on %s every awaited call is superseded', (how) => {
    const session = begun();
    const { turnId } = session;
    if (how === 'cancel') session.say('something else');
    else session.apply({ ...header, type: 'turn.deadline', commandId: 'late', turnId });

    expect(session.aborted).toEqual([`${turnId}-1`, `${turnId}-2`]);
    expect(session.agentStates).toEqual([]);
    const ended = session.lines.slice(3);
    expect(ended.slice(0, 2)).toEqual(
      how === 'cancel' ? ['cancelled', 'ready'] : ['error (turn_timeout: the reply took longer than a turn may take)', 'ready'],
    );
  });

  it('asks anew for a reply whose prompt a host could not render, and once', () => {
    const session = begun();
    const { turnId } = session;
    session.judge(`${turnId}-1`, []);
    session.judge(`${turnId}-2`, []);
    const unrendered = { toolCalls: [{ id: '', name: '', arguments: '' }], provider: '', model: '', usage: null, finishReason: 'error' };
    for (let repeat = 0; repeat < 2; repeat += 1) session.apply({ ...session.resultOf(`${turnId}-3`, ''), ...unrendered });
    expect([...session.open.keys()]).toEqual([`${turnId}-4`]);
    session.finish();

    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
  });

  it('rule 106: remembers a turn that has replied', () => {
    const session = begun();
    session.finish(['leak']);
    session.say('thanks');
    session.finish();

    expect(session.agentStates).toMatchObject([{ seq: 1 }, { seq: 2 }]);
  });

  it('rule 107: the snapshot holds ids and numbers, and does not grow with the conversation', () => {
    const session = begun();
    const first = JSON.stringify(session.state?.actors).length;
    session.finish(['leak']);
    for (let turn = 0; turn < 30; turn += 1) {
      session.say(`message ${turn}`);
      expect(JSON.stringify(session.state?.actors).length).toBeLessThan(first + 100);
      expect(JSON.stringify(session.state?.actors)).not.toMatch(/holds|because|message/);
      session.finish(['leak']);
    }
  });

  it('an agent whose policies all hold always makes one call, and says which apply', () => {
    const session = new EngineSession(documentsOf(testPolicy('polite', { condition: null })));
    session.say('Hello');
    expect([...session.open.values()]).toMatchObject([{ kind: 'router-call', inputs: { template: 'compose-guided@2', staged: 2 } }]);
    session.finish();

    expect(session.lines).toEqual(['user_message Hello', 'acknowledged', 'typing', 'assistant_message a reply', 'ready']);
  });
});

function begun(): EngineSession {
  const session = new EngineSession(documentsOf(...THREE.map((id) => testPolicy(id))));
  session.say('It leaks');
  return session;
}

function documentsOf(...policies: ReturnType<typeof testPolicy>[]): EngineDocuments {
  return testEngineDocuments({ policies, batchSize: 2 });
}

function verdicts(...applies: boolean[]): string {
  return JSON.stringify({ verdicts: applies.map((one, index) => ({ id: index + 1, rationale: 'r', applies: one })) });
}
