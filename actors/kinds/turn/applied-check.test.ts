import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import { effects } from '../../effects/registry.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { deleteEvents, header, post } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';

describe('the check which policies a reply has applied', () => {
  it('rule 16: is made once the turn is over, and what it finds counts for the turns after', () => {
    const { session, turnId } = replied();
    expect(session.lines.at(-1)).toBe('ready');
    expect([...session.open.values()]).toMatchObject([{ id: `${turnId}-applied`, kind: 'turn-applied', inputs: { policyIds: ['leak'] } }]);
    session.judgeApplied(`${turnId}-applied`, ['leak']);

    expect(session.agentStates.at(-1)).toMatchObject({ seq: 2, appliedPolicyIds: ['leak'] });
    session.say('It still leaks');
    expect(classes(session)).toEqual(['actionable', 'previously-applied']);
  });

  it('rule 16: never delays the next turn, whose own end does not forget it', () => {
    const { session, turnId } = replied();
    session.say('It still leaks');
    expect(classes(session)).toEqual(['actionable']);
    session.judgeApplied(`${turnId}-applied`, ['leak']);
    expect(classes(session)).toEqual(['actionable']);
    session.finish();

    expect(session.agentStates.at(-1)).toMatchObject({ seq: 3, appliedPolicyIds: ['leak'] });
  });

  it('rule 16: arrives during the next turn, and a deletion of that turn does not forget what it found', () => {
    const { session, turnId } = replied();
    const { length } = session.log;
    session.say('It still leaks');
    session.judgeApplied(`${turnId}-applied`, ['leak']);
    session.apply(deleteEvents(length, true));
    session.say('It leaks again');
    expect(classes(session)).toEqual(['actionable', 'previously-applied']);
  });

  it('rule 16: arrives after the next turn, and a deletion of that turn does not forget what it found', () => {
    const { session, turnId } = replied();
    const { length } = session.log;
    session.say('It still leaks');
    const later = session.turnIds.at(-1);
    session.judge(`${later}-1`, []);
    session.reply(`${later}-2`, 'Does it?');
    expect(session.lines.at(-1)).toBe('ready');
    session.judgeApplied(`${turnId}-applied`, ['leak']);
    expect(session.agentStates.at(-1)).toMatchObject({ appliedPolicyIds: ['leak'] });
    session.apply(deleteEvents(length, true));
    session.say('It leaks again');
    expect(classes(session)).toEqual(['actionable', 'previously-applied']);

    session.finish();
    session.apply(deleteEvents(0, true));
    session.say('It leaks');
    expect(classes(session)).toEqual(['actionable']);
  });

  it('rule 16: arrives after two turns, of which the second is deleted: what the first one left counts with what was found since', () => {
    const { session, turnId } = replied();
    const second = reply(session, 'And that one?', ['greet']);
    const { length } = session.log;
    reply(session, 'It still leaks', []);
    session.judgeApplied(`${second}-applied`, ['greet']);
    session.judgeApplied(`${turnId}-applied`, ['leak']);
    session.apply(deleteEvents(length, true));
    session.say('It leaks again');

    expect(session.rows(session.turnIds.at(-1))).toMatchObject([{ kind: 'began', state: { seq: 2, appliedPolicyIds: ['leak', 'greet'] } }]);
  });

  it('rule 16: finds nothing that a later turn has not found already: what the agent remembers stays', () => {
    const { session, turnId } = replied();
    const second = reply(session, 'It still leaks', ['leak']);
    session.judgeApplied(`${second}-applied`, ['leak']);
    session.apply(session.resultOf(`${turnId}-applied`, JSON.stringify({ verdicts: [{ id: 1, rationale: 'r', applies: true }] })), post('Again'));

    expect(session.rows(session.turnIds.at(-1))).toMatchObject([{ kind: 'began', state: { seq: 3, appliedPolicyIds: ['leak'] } }]);
  });

  it('rule 16: leaves no row behind when the session is deleted in the commit that takes its result', () => {
    const { session, turnId } = replied();
    const { length } = session.agentStates;
    const verdicts = JSON.stringify({ verdicts: [{ id: 1, rationale: 'r', applies: true }] });
    const deletion = { ...header, type: 'session.delete' as const, commandId: 'delete', unlessBusy: false };
    session.apply(deletion, session.resultOf(`${turnId}-applied`, verdicts));
    expect(session.agentStates).toHaveLength(length);
  });

  it('rule 16: an answer that can not be read is asked for once more, about the same conversation', () => {
    const { session, turnId } = replied();
    const [first] = session.open.values();
    session.say('It still leaks');
    session.reply(`${turnId}-applied`, 'no JSON');
    const second = session.open.get(`${turnId}-applied-2`);
    expect(second).toMatchObject({ actorId: turnId, kind: 'turn-applied', inputs: { ...first?.inputs, deadlineAtMs: expect.any(Number) } });
    // Delivered twice.
    session.reply(`${turnId}-applied`, 'no JSON');
    session.judgeApplied(`${turnId}-applied-2`, ['leak']);
    session.finish();

    expect(session.agentStates.at(-1)).toMatchObject({ appliedPolicyIds: ['leak'] });
    expect(session.rows(turnId).filter(({ kind }) => kind === 'malformed')[0]).toMatchObject({ asked: 'applied', reason: expect.stringContaining('JSON') });
  });

  it('rule 16: a failed check and two answers that can not be read leave the policies as not applied', () => {
    for (const isFailed of [true, false]) {
      const { session, turnId } = replied();
      const callId = `${turnId}-applied`;
      const failure = { code: 'router.timeout', message: '', details: {} };
      if (isFailed) session.apply({ ...header, type: 'call.failed', commandId: callId, ...actorFields(turnId), callId, failure });
      else for (const id of [callId, `${callId}-2`]) session.reply(id, 'no JSON');

      expect(session.open.size).toBe(0);
      expect(session.agentStates).toMatchObject([{ seq: 1, appliedPolicyIds: [] }]);
      expect(session.lines.at(-1)).toBe('ready');
    }
  });

  it.each(['goes on', 'is deleted'])('ends without a result when its item is lost, and the session %s', (what) => {
    const { session, turnId } = replied();
    const key = `${turnId}-applied-overdue`;
    if (what === 'is deleted') session.apply({ ...header, type: 'session.delete', commandId: 'delete', unlessBusy: false });
    expect(session.open.size).toBe(1);

    expect(session.ring(key)).toBe(65_000);
    expect([session.open.size, session.timers.has(key)]).toEqual([0, false]);
    expect(session.agentStates.at(-1)).toMatchObject({ seq: 1, appliedPolicyIds: [] });
  });

  it('has a timer without a row until its result, also when it is made again, which the next owner derives from its effect', () => {
    const { session, turnId } = replied();
    for (const callId of [`${turnId}-applied`, `${turnId}-applied-2`]) {
      const key = `${callId}-overdue`;
      const [open = expect.fail('no check is open')] = session.open.values();
      const { command, ...armed } = session.timers.get(key) ?? expect.fail('no timer is armed');
      expect(armed).toMatchObject({ key, isDerived: true });
      const [derived] = effects.timersOf(open);
      expect(derived).toMatchObject({ partition: open.partition, key, dueAtMs: armed.dueAtMs });
      const { sentAtMs: _sent, traceparent: _trace, ...fields } = JSON.parse(derived?.command ?? '') as CommandOf<'call.failed'>;
      expect(JSON.parse(command)).toMatchObject(fields);
      session.reply(callId, 'no JSON');
      expect(session.timers.has(key)).toBe(false);
    }
    expect(session.open.size).toBe(0);
  });

  it('rule 16: is not made for a turn without policies to look for, nor for one that failed', () => {
    const { session } = begun();
    session.finish();
    session.say('It leaks');
    session.judge(`${session.turnId}-1`, ['leak']);
    session.reply(`${session.turnId}-2`, '');

    expect(session.open.size).toBe(0);
    expect(session.lines.slice(-2)).toEqual([expect.stringContaining('error'), 'ready']);
  });
});

function begun() {
  const policies = [testPolicy('leak'), testPolicy('greet')];
  const session = new EngineSession(testEngineDocuments({ policies }));
  session.say('It leaks');
  return { session, turnId: session.turnId };
}

/** After a turn in which `leak` was followed. */
function replied() {
  const { session, turnId } = begun();
  session.judge(`${turnId}-1`, ['leak']);
  session.reply(`${turnId}-2`, 'Please send a photo.');
  return { session, turnId };
}

/** A turn that applies these policies and replies. @returns its id */
function reply(session: EngineSession, text: string, applying: readonly string[]): string {
  session.say(text);
  const turnId = session.turnIds.at(-1) ?? '';
  session.judge(`${turnId}-1`, applying);
  session.reply(`${turnId}-2`, 'So it is.');
  expect(session.lines.slice(-2)).toEqual(['assistant_message So it is.', 'ready']);
  return turnId;
}

function classes(session: EngineSession): string[] {
  return [...session.open.values()].flatMap(({ inputs }) => (inputs as { reference?: { class: string } }).reference?.class ?? []);
}
