import { describe, expect, it } from 'vitest';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { deleteEvents, post } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';

const withPolicy = testEngineDocuments({ policies: [testPolicy('leak')] });

function sessionOf(documents: ConstructorParameters<typeof EngineSession>[0] = withPolicy): EngineSession {
  const session = new EngineSession(documents);
  session.hasPreambles = true;
  return session;
}
const preambleIn = ({ open }: EngineSession) => [...open.values()].find(({ kind }) => kind === 'turn-preamble')?.id ?? '';
const replyIn = ({ open }: EngineSession) => [...open.values()].find(({ kind }) => kind === 'router-call')?.id ?? '';
const preamblesOf = ({ lines }: EngineSession) => lines.filter((line) => line.startsWith('preamble'));

/** A turn from the message to the end. */
function turn(session: EngineSession, { text = '', waitMs = 0 }): void {
  session.say('Hello?');
  if (text !== '') session.preamble(preambleIn(session), text);
  session.pause(waitMs);
  session.finish(['leak']);
}

describe('a preamble', () => {
  it('rule 112: is asked for beside matching, and stands before the first stage', () => {
    const session = sessionOf();
    session.say('It leaks');
    const { turnId } = session;
    expect([...session.open.values()].map(({ id, kind }) => [id, kind])).toEqual([
      [`${turnId}-preamble-1`, 'turn-preamble'],
      [`${turnId}-1`, 'turn-step'],
    ]);
    expect(session.lines.slice(1)).toEqual(['acknowledged']);
    session.preamble(`${turnId}-preamble-1`, 'One moment.', 700);
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'preamble One moment.', 'processing/matching']);
    session.finish(['leak']);
    expect(session.lines.slice(4)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.log.find(({ kind }) => kind === 'preamble')).toMatchObject({ source: 'ai_agent', metadata: {}, trace_id: session.log[0]?.trace_id });
  });

  it.each([
    ['is asked for beside the reply of an agent without policies, whose `typing` waits for it', null],
    ['is asked for beside the reply of an agent whose policies need no call', testEngineDocuments({ policies: [testPolicy('always', { condition: null })] })],
  ])('rule 113: %s', (_, documents) => {
    const session = sessionOf(documents);
    session.say('Hello?');
    expect([...session.open.values()].map(({ kind }) => kind)).toEqual(['turn-preamble', 'router-call']);
    expect(session.lines.slice(1)).toEqual(['acknowledged']);
    session.preamble(preambleIn(session), 'One moment.');
    session.finish();
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'preamble One moment.', 'typing', 'assistant_message a reply', 'ready']);
  });

  it('rule 113: is dropped when the reply, or another stage of the turn, is there first', () => {
    const short = sessionOf(null);
    short.say('Hello?');
    const late = preambleIn(short);
    short.reply(replyIn(short), 'a reply');
    short.preamble(late, 'One moment.');
    expect(short.lines.slice(1)).toEqual(['acknowledged', 'typing', 'assistant_message a reply', 'ready']);
    expect([short.aborted, short.open.size]).toEqual([[late], 0]);

    const session = sessionOf();
    session.say('It leaks');
    const asked = preambleIn(session);
    session.judge(`${session.turnId}-1`, ['leak']);
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/matching', 'typing']);
    session.preamble(asked, 'One moment.');
    session.finish();
    expect(preamblesOf(session)).toEqual([]);
    expect(session.aborted).toEqual([asked]);
  });

  it.each([
    ['comes after 1.5 s', (session: EngineSession, id: string) => session.preamble(id, 'One moment.', 1_501)],
    ['fails', (session: EngineSession, id: string) => session.preamble(id, null)],
    ['is a question', (session: EngineSession, id: string) => session.preamble(id, 'Shall I look?')],
    ['is too long', (session: EngineSession, id: string) => session.preamble(id, 'a '.repeat(101))],
    ['is empty', (session: EngineSession, id: string) => session.preamble(id, ' \u200b')],
    ['is no JSON', (session: EngineSession, id: string) => session.reply(id, 'One moment.')],
  ])('rule 113: one that %s is dropped without a trace in the log', (_, answer) => {
    const session = sessionOf();
    session.say('It leaks');
    answer(session, preambleIn(session));
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/matching']);
    session.finish(['leak']);
    expect(session.lines.slice(3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.agentStates).toEqual([expect.objectContaining({ preambles: [], replies: 1 })]);
  });

  it('rule 113: counts once, however often its answer comes', () => {
    const session = sessionOf();
    session.say('It leaks');
    const id = preambleIn(session);
    for (const text of ['One moment.', 'One moment.', 'Another.']) session.preamble(id, text);
    session.finish(['leak']);
    session.preamble(id, 'Once more.');
    expect(preamblesOf(session)).toEqual(['preamble One moment.']);
    expect(session.aborted).toEqual([]);
  });

  it.each([['matching', withPolicy] as const, ['composing', null] as const])(
    'rule 113: a message that joins while %s has it asked for anew',
    (_, documents) => {
      const session = sessionOf(documents);
      session.say('It leaks');
      const first = preambleIn(session);
      session.say('And smells', 100);
      const second = preambleIn(session);
      expect(second).toBe(`${session.turnId}-preamble-2`);
      expect(session.open.get(second)?.inputs).toMatchObject({ upToOffset: 2, deadlineAtMs: session.open.get(second)?.inputs.deadlineAtMs });
      expect(session.aborted).toContain(first);
      session.preamble(first, 'Oh.');
      session.preamble(second, 'Oh dear.');
      session.finish();
      expect(preamblesOf(session)).toEqual(['preamble Oh dear.']);
    },
  );

  it('rule 113: ends with a turn that is cancelled, fails or is past its deadline', () => {
    const session = sessionOf();
    session.say('It leaks');
    const first = preambleIn(session);
    session.say('Never mind');
    expect(session.aborted).toContain(first);
    session.preamble(first, 'One moment.');
    const second = preambleIn(session);
    session.deadline(session.turnId, 180_000);
    expect(session.aborted).toContain(second);
    session.say('Hello?');
    session.poison();
    expect(session.lines.filter((line) => line === 'ready')).toHaveLength(3);
    expect([preamblesOf(session), session.open.size]).toEqual([[], 0]);
  });
});

describe('when a turn gets a preamble', () => {
  it('rule 111: the first two replies do, later ones after two long waits', () => {
    const session = sessionOf();
    turn(session, { text: 'One moment.', waitMs: 6_000 });
    turn(session, { text: 'Let me see.', waitMs: 1_000 });
    turn(session, { text: '', waitMs: 6_000 });
    turn(session, { text: '', waitMs: 5_000 });
    turn(session, { text: 'Thank you.', waitMs: 100 });
    turn(session, { waitMs: 6_000 });
    expect(session.turnIds.map((turnId) => session.log.filter(({ kind }) => kind === 'preamble').length > 0 && turnId !== '')).toHaveLength(6);
    expect(preamblesOf(session)).toEqual(['preamble One moment.', 'preamble Let me see.', 'preamble Thank you.']);
    expect(session.agentStates.at(-1)).toMatchObject({
      replies: 2,
      waitsMs: [100, 6_000],
      endsInPreamble: false,
      preambles: ['One moment.', 'Let me see.', 'Thank you.'],
    });
  });

  it('rule 111: never right after another one, as when its turn was cancelled', () => {
    const session = sessionOf();
    session.say('It leaks');
    session.preamble(preambleIn(session), 'One moment.');
    session.say('Never mind');
    expect(preambleIn(session)).toBe('');
    expect(session.lines.slice(4)).toEqual(['cancelled', 'ready', 'user_message Never mind', 'acknowledged', 'processing/matching']);
    session.finish();
    session.say('Another thing');
    expect(preambleIn(session)).not.toBe('');
  });

  it('rule 111: none is like one before, but for case and punctuation', () => {
    const session = sessionOf();
    turn(session, { text: 'One moment.' });
    turn(session, { text: 'one  moment…' });
    expect(preamblesOf(session)).toEqual(['preamble One moment.']);
  });

  it('rule 111: what is deleted with the end of the log is forgotten', () => {
    const session = sessionOf();
    session.say('It leaks');
    session.preamble(preambleIn(session), 'One moment.');
    session.apply(post('Stop'));
    session.apply(deleteEvents(0, true));
    session.finish();
    session.say('It leaks');
    expect(preambleIn(session)).not.toBe('');
  });

  it('rule 111: an agent without examples has none, and stores nothing more', () => {
    const session = new EngineSession(null);
    session.say('Hello?');
    expect([...session.open.values()].map(({ kind }) => kind)).toEqual(['router-call']);
    session.finish();
    expect([session.lines.slice(1), session.agentStates]).toEqual([['acknowledged', 'typing', 'assistant_message a reply', 'ready'], []]);
    expect(Object.keys(session.state?.actors['turn'] ?? {})).toEqual([]);
  });
});
