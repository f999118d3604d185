import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { modelOf } from '../../engine/routines/test-support/routines.ts';
import { deleteEvents, header, patchEvent, post } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import { matched, result } from '../../test-support/tool-turn.ts';

const SEARCH = { maxMessages: 20, timeoutMs: 5_000, first: 'search' } as const;
const ERROR = 'error (moderation_unavailable: a message could not be checked by moderation)';
const withPolicy = () => new EngineSession(testEngineDocuments({ policies: [testPolicy('leak')], search: SEARCH }));

const kindsOf = ({ open }: EngineSession) => [...open.values()].map(({ kind }) => kind);
const marksOf = ({ log }: EngineSession) => log.flatMap(({ kind, metadata }) => (kind === 'user_message' ? [metadata['moderation']] : []));
const PENDING = { mode: 'auto', status: 'pending' };
const PASSED = { mode: 'auto', status: 'passed', flagged: false, tags: [] };
const UNAVAILABLE = { mode: 'auto', status: 'unavailable' };

describe('a message that is checked by moderation', () => {
  it('rule 120: is in the log at once, and marked when its check has ended', () => {
    const session = withPolicy();
    const check = session.sayChecked('It leaks');
    expect(session.log[0]).toMatchObject({ kind: 'user_message', text: 'It leaks', metadata: { moderation: PENDING } });
    expect(check).toBe(`${session.log[0]?.id}-moderation`);
    session.moderate(check, 'passed');
    expect(marksOf(session)).toEqual([PASSED]);
    expect(session.checks).toEqual([]);
    expect([...session.timers.keys()].filter((key) => key.startsWith(check))).toEqual([]);
  });

  it('rule 120: keeps what its caller has stored in its metadata, and what another one stores meanwhile', () => {
    const session = withPolicy();
    session.apply({ ...post('It leaks'), v: 3, moderation: 'auto', metadata: { page: 3, moderation: { flagged: false } } });
    const [check = ''] = session.checks;
    session.apply(patchEvent(session.log[0]?.id ?? '', { seen: true }));
    session.moderate(check, ['violence']);
    expect(session.log[0]?.metadata).toEqual({ page: 3, seen: true, moderation: { mode: 'auto', status: 'flagged', flagged: true, tags: ['violence'] } });
  });

  it('DESIGN 5: rule 121: its turn acknowledges it, and makes no call before it has passed', () => {
    const session = withPolicy();
    session.hasPreambles = true;
    const check = session.sayChecked('It leaks');
    expect(session.lines.slice(1)).toEqual(['acknowledged']);
    expect(kindsOf(session)).toEqual(['moderation']);
    session.moderate(check, 'passed');
    expect(kindsOf(session).toSorted()).toEqual(['search', 'turn-preamble', 'turn-step']);
    session.finish(['leak']);
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/matching', 'typing', 'assistant_message a reply', 'ready']);
    expect(session.rows(session.turnIds[0]).map(({ kind }) => kind)).toEqual(['began', 'search', 'match', 'resolved']);
  });

  it('rule 121: so does the turn of an agent without policies', () => {
    const session = new EngineSession(null);
    session.hasPreambles = true;
    const check = session.sayChecked('Hello');
    expect([kindsOf(session), session.lines.slice(1)]).toEqual([['moderation'], ['acknowledged']]);
    session.moderate(check, 'passed');
    expect(kindsOf(session)).toEqual(['turn-preamble', 'router-call']);
    session.finish();
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'typing', 'assistant_message a reply', 'ready']);
  });

  it('rule 122: is answered though it is flagged, and its tags are in its metadata', () => {
    const session = withPolicy();
    const tags = Array.from({ length: 40 }, (_, index) => `${index}`.repeat(100));
    session.moderate(session.sayChecked('A threat'), tags);
    session.finish(['leak']);
    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    const [mark] = marksOf(session) as [{ tags: string[] }];
    expect(mark).toMatchObject({ status: 'flagged', flagged: true });
    expect([mark.tags.length, Math.max(...mark.tags.map((tag) => tag.length))]).toEqual([32, 100]);
  });

  it.each<[string, (session: EngineSession, check: string) => void]>([
    ['fails', (session, check) => session.moderate(check, 'unavailable')],
    ['has no result in time', (session, check) => void session.ring(`${check}-overdue`)],
  ])('DESIGN 5: rule 123: its turn ends as an error when its check %s, and it stays withheld', (_, end) => {
    const session = withPolicy();
    const check = session.sayChecked('It leaks');
    end(session, check);
    expect(session.lines.slice(1)).toEqual(['acknowledged', ERROR, 'ready']);
    expect(marksOf(session)).toEqual([UNAVAILABLE]);
    expect(session.open.size).toBe(0);
    session.moderate(check, 'passed');
    expect(marksOf(session)).toEqual([UNAVAILABLE]);
    session.say('Hello?');
    session.finish();
    expect(session.lines.slice(-1)).toEqual(['ready']);
    expect(session.lines.filter((line) => line === ERROR)).toHaveLength(1);
  });

  it('rule 123: is given half a minute, and the grace of a lost item', () => {
    const session = withPolicy();
    const check = session.sayChecked('It leaks');
    expect(session.ring(`${check}-overdue`)).toBe(31_000);
  });

  it.each(['matching', 'retrieving', 'composing', 'checking'])(
    'rule 124: that joins a turn while it is %s ends its calls, and all begins anew once it has passed',
    (when) => {
      const policies = [testPolicy('leak', { criticality: 'high' })];
      const session = new EngineSession(testEngineDocuments({ policies, search: SEARCH }));
      session.say('It leaks');
      const { turnId } = session;
      if (when !== 'matching') session.judge(`${turnId}-2`, ['leak']);
      if (when === 'composing' || when === 'checking') session.tool(`${turnId}-1`, { type: 'result', data: { documents: [] }, metadata: {}, isError: false });
      if (when === 'checking') session.reply(`${turnId}-3`, 'a draft');
      const before = [...session.open.keys()];
      const check = session.sayChecked('The hose, I mean', { pauseMs: 10 });
      expect(kindsOf(session)).toEqual(['moderation']);
      expect(session.aborted).toEqual(expect.arrayContaining(before));
      session.moderate(check, 'passed');
      expect(session.rows(turnId).at(-1)).toMatchObject({ kind: 'began' });
      expect(kindsOf(session)).toContain('turn-step');
      session.finish(['leak']);
      expect(session.lines.filter((line) => /^(ready|acknowledged|assistant_message.*)$/.test(line))).toEqual([
        'acknowledged',
        'assistant_message a reply',
        'ready',
      ]);
      expect(session.lines).not.toContain('cancelled');
    },
  );

  it('rule 124: that joins a turn without an engine has its reply composed anew, with one typing', () => {
    const session = new EngineSession(null);
    session.say('Hello');
    const first = [...session.open.keys()];
    const check = session.sayChecked('Are you there?', { pauseMs: 10 });
    expect(session.aborted).toEqual(first);
    session.moderate(check, 'passed');
    session.finish();
    expect(session.lines).toEqual(['user_message Hello', 'acknowledged', 'typing', 'user_message Are you there?', 'assistant_message a reply', 'ready']);
  });

  it('rule 124: begins its turn when the last of several has passed, in any order', () => {
    const session = withPolicy();
    const one = session.sayChecked('It leaks');
    const two = session.sayChecked('The hose', { pauseMs: 10 });
    session.moderate(two, ['insult']);
    expect(kindsOf(session)).toEqual(['moderation']);
    session.say('Please', 10);
    expect(kindsOf(session)).toEqual(['moderation']);
    session.moderate(one, 'passed');
    session.finish();
    expect(session.lines.filter((line) => line === 'ready')).toHaveLength(1);
    expect(marksOf(session)).toMatchObject([{ status: 'passed' }, { status: 'flagged' }, undefined]);
  });

  it('rule 124: a new message cancels the turn, whose check goes on; the next turn waits for both', () => {
    const session = withPolicy();
    const one = session.sayChecked('It leaks');
    const two = session.sayChecked('Never mind');
    expect(session.lines).toEqual(['user_message It leaks', 'acknowledged', 'cancelled', 'ready', 'user_message Never mind', 'acknowledged']);
    session.moderate(two, 'passed');
    expect(kindsOf(session)).toEqual(['moderation']);
    session.moderate(one, 'passed');
    session.finish();
    expect(session.lines.slice(-2)).toEqual(['assistant_message a reply', 'ready']);
  });

  it.each(['deadline', 'poison', 'deletion'])('rule 124: a turn that waits ends by its %s, and a late result changes nothing of it', (how) => {
    const session = withPolicy();
    const check = session.sayChecked('It leaks');
    const turnId = [...session.timers.keys()].find((key) => key.endsWith('-deadline'))?.replace('-deadline', '') ?? '';
    if (how === 'poison') session.poison();
    else if (how === 'deadline') session.apply({ ...header, type: 'turn.deadline', commandId: `${turnId}-deadline`, turnId });
    else session.apply(deleteEvents(0, true));
    const ended = session.lines;
    expect(ended.at(-1)).toBe('ready');
    session.moderate(check, 'unavailable');
    expect(session.lines).toEqual(ended);
    session.say('Hello?');
    session.finish();
    expect(session.lines.at(-1)).toBe('ready');
  });

  it('rule 124: its check ends with its session', () => {
    const session = withPolicy();
    const checks = [session.sayChecked('It leaks'), session.sayChecked('The hose', { pauseMs: 10 })];
    session.apply({ ...header, type: 'session.delete', commandId: 'delete' });
    expect([session.open.size, session.timers.size, session.aborted]).toEqual([0, 0, checks]);
  });

  it('rule 125: that begins no turn is checked too; a turn that begins meanwhile waits, and one that runs does not', () => {
    const session = withPolicy();
    const quiet = session.sayChecked('For later', { triggersTurn: false });
    expect([session.lines, kindsOf(session)]).toEqual([['user_message For later'], ['moderation']]);
    session.say('It leaks');
    expect(kindsOf(session)).toEqual(['moderation']);
    session.moderate(quiet, 'passed');
    expect(kindsOf(session)).toEqual(['search', 'turn-step']);
    const another = session.sayChecked('And this', { triggersTurn: false, pauseMs: 10 });
    expect(kindsOf(session)).toEqual(['search', 'turn-step', 'moderation']);
    session.moderate(another, 'unavailable');
    session.finish();
    expect(session.lines.slice(-2)).toEqual(['assistant_message a reply', 'ready']);
    expect(marksOf(session)).toMatchObject([{ status: 'passed' }, undefined, UNAVAILABLE]);
  });

  it.each(['passed', 'unavailable'] as const)('rule 125: of a turn that waits for a tool is checked meanwhile: %s', (outcome) => {
    const routines = ['return', 'repair'].map((id) => modelOf(id, [{ kind: 'chat', id: 'one', chat_state: `Say how a ${id} works.` }], []));
    const { session } = matched({ routines: routines.map(({ routine }) => routine), routineModels: routines });
    for (const call of session.asked) session.judge(call.split(' ')[0] ?? '', ['ask']);
    session.infer([...session.open.keys()][0] ?? '', ['shop__refund', {}]);
    const [refund = ''] = session.open.keys();
    session.moderate(session.sayChecked('How does a repair work?'), outcome);
    session.tool(refund, result('refunded'));
    if (outcome === 'unavailable') return void expect(session.lines.slice(-3)).toEqual(['acknowledged', ERROR, 'ready']);
    expect(session.rows()[0]).toMatchObject({ kind: 'began', likeliest: 'repair' });
  });

  it('rule 12: selects a routine only once it has passed, also among several', () => {
    const routines = ['return', 'repair'].map((id) => modelOf(id, [{ kind: 'chat', id: 'one', chat_state: `Say how a ${id} works.` }], []));
    const documents = testEngineDocuments({ policies: [], routines: routines.map(({ routine }) => routine), routineModels: routines });
    const beganOf = (outcomes: ['passed' | readonly string[], 'passed' | readonly string[]]) => {
      const session = new EngineSession(documents);
      const checks = [session.sayChecked('A return!'), session.sayChecked('No, a repair!', { pauseMs: 10 })];
      session.moderate(checks[1] ?? '', outcomes[1]);
      session.moderate(checks[0] ?? '', outcomes[0]);
      const [began] = session.rows();
      return began?.kind === 'began' ? began.likeliest : null;
    };
    expect(beganOf(['passed', 'passed'])).toBe('repair');
    expect(beganOf(['passed', ['insult']])).toBe('return');
    expect(beganOf([['insult'], ['insult']])).toBeUndefined();
  });

  it('rule 127: is refused while 32 others of its session are being checked', () => {
    const session = withPolicy();
    for (let number = 1; number <= 33; number += 1) session.sayChecked(`message ${number}`, { pauseMs: 0 });
    expect(session.checks).toHaveLength(32);
    expect(session.log.filter(({ kind }) => kind === 'user_message')).toHaveLength(32);
  });

  it('rule 120: a repeated or late result changes nothing', () => {
    const session = withPolicy();
    const check = session.sayChecked('It leaks');
    session.moderate(check, 'passed');
    const lines = session.lines;
    session.moderate(check, ['violence']);
    session.apply({ ...header, type: 'effect.overdue', commandId: `${check}-overdue`, ...actorFields('evt'), callId: check, kind: 'moderation' });
    expect([session.lines, marksOf(session)]).toEqual([lines, [PASSED]]);
  });
});
