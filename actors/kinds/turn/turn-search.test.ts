import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import type { SearchPlan } from '../../engine/retrieval/search-plan.ts';
import { header } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';

const EXTERNAL: SearchPlan = { first: 'search', maxMessages: 20, timeoutMs: 5_000 };
const DOCUMENT = { content: 'Hoses have two years of warranty.', title: 'Warranty', url: null };
const FOUND: ToolOutcome = { type: 'result', data: { documents: [DOCUMENT] }, metadata: {}, isError: false };
const FAILED: ToolOutcome = { type: 'failed', reason: 'unreachable', message: 'the search service answered 500' };

describe('a turn that retrieves documents', () => {
  it('rule 70: begins to search with the turn, beside matching, and composes at once when both have come', () => {
    const session = begun();
    expect(kindsOf(session)).toEqual(['search', 'turn-step']);

    session.tool(id(session, 1), FOUND);
    expect(session.lines.at(-1)).toBe('processing/matching');
    session.judge(id(session, 2), ['leak']);
    expect(kindsOf(session)).toEqual(['router-call']);
    session.finish();

    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/matching', 'typing', 'assistant_message a reply', 'ready']);
    expect(session.rows().map(({ kind }) => kind)).toEqual(['began', 'search', 'match', 'resolved']);
    expect(session.rows()[1]).toEqual({ kind: 'search', key: 'search', ms: 0, documents: [DOCUMENT], failure: null });
  });

  it('rule 73: searches anew for a message that joins while the reply is checked', () => {
    const session = begun(EXTERNAL, [testPolicy('leak', { criticality: 'high' })]);
    session.tool(id(session, 1), FOUND);
    session.judge(id(session, 2), ['leak']);
    session.reply(id(session, 3), 'the first');
    session.say('And the hose?', 10);
    expect(kindsOf(session)).toEqual(['search', 'turn-step']);

    session.tool([...session.open.keys()][0] ?? '', FOUND);
    session.finish(['leak']);
    const rows = session.rows(session.turnIds[0]);
    expect(rows.slice(rows.findLastIndex(({ kind }) => kind === 'began')).map(({ kind }) => kind)).toEqual([
      ...['began', 'search', 'match', 'resolved', 'reply', 'check-reply'],
    ]);
  });

  it('rule 71: waits for the search before its reply, with one status', () => {
    const session = begun();
    session.judge(id(session, 2), ['leak']);
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/matching', 'processing/retrieving']);
    expect(kindsOf(session)).toEqual(['search']);

    session.tool(id(session, 1), FOUND);
    expect(kindsOf(session)).toEqual(['router-call']);
    expect([...session.open.values()][0]?.inputs).toMatchObject({ staged: 4 });
    session.finish();
    expect(session.lines.slice(4)).toEqual(['typing', 'assistant_message a reply', 'ready']);
  });

  it('rule 71: also without policies', () => {
    const session = begun(EXTERNAL, []);
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/retrieving']);
    session.tool(id(session, 1), FOUND);
    session.finish();
    expect(session.lines.slice(3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
  });

  it.each([
    ['fails', FAILED, 'unreachable'],
    ['is of a form that is not known', { type: 'result', data: { documents: 'none' }, metadata: {}, isError: false } satisfies ToolOutcome, 'refused'],
  ])('rule 72: replies without documents when the search %s', (_, outcome, failure) => {
    const session = begun();
    session.tool(id(session, 1), outcome);
    session.finish(['leak']);

    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.rows()[1]).toMatchObject({ kind: 'search', documents: [], failure });
  });

  it('rule 72: replies without documents when no result comes, and drops one that comes too late', () => {
    const session = begun(EXTERNAL, []);
    const search = id(session, 1);
    overdue(session, search);
    expect(kindsOf(session)).toEqual(['router-call']);
    session.tool(search, FOUND);
    session.finish();

    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.rows().filter(({ kind }) => kind === 'search')).toEqual([expect.objectContaining({ documents: [], failure: 'timeout' })]);
  });

  it('rule 72: a repeated result counts once', () => {
    const session = begun();
    for (let repeat = 0; repeat < 3; repeat += 1) session.tool(id(session, 1), FOUND);
    overdue(session, id(session, 1));
    session.finish();
    expect(session.rows().map(({ kind }) => kind)).toEqual(['began', 'search', 'match', 'resolved']);
  });

  it.each(['while it matches', 'while it waits for the search', 'while it composes'])('rule 73: a message that joins %s begins the search anew', (when) => {
    const session = begun();
    if (when !== 'while it matches') session.judge(id(session, 2), []);
    if (when === 'while it composes') session.tool(id(session, 1), FOUND);
    session.say('The hose, I mean', 10);

    const [search] = [...session.open.values()].filter(({ kind }) => kind === 'search');
    expect(kindsOf(session).toSorted()).toEqual(['search', 'turn-step']);
    expect(search?.id).not.toBe(id(session, 1));
    session.tool(id(session, 1), FOUND);
    expect(session.rows().at(-1)).toMatchObject({ kind: 'began' });
    session.finish();
    expect(session.lines.filter((line) => line === 'ready')).toHaveLength(1);
  });

  it('rule 71: a message that joins while it waits, and again while it composes, brings no stage twice in a row, and none behind `typing`', () => {
    const session = begun(EXTERNAL, []);
    session.say('The hose, I mean', 10);
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/retrieving', 'user_message The hose, I mean']);
    session.tool(id(session, 2), FOUND);
    session.say('The blue one', 10);
    expect(kindsOf(session)).toEqual(['search']);
    session.finish();
    expect(session.lines.slice(4)).toEqual(['typing', 'user_message The blue one', 'assistant_message a reply', 'ready']);
  });

  it.each(['turn.cancel', 'turn.deadline', 'poison'])('rule 73: ends with its turn, by %s', (how) => {
    const session = begun(EXTERNAL, []);
    const { turnId } = session;
    if (how === 'poison') session.poison();
    else if (how === 'turn.deadline') session.deadline(turnId, 180_000);
    else session.say('Never mind', 60_000);

    expect(session.lines).toContain('ready');
    expect(session.open.has(`${turnId}-1`)).toBe(false);
    expect(session.aborted).toContain(`${turnId}-1`);
  });

  it('rule 71: leaves half of the turn for the reply, however long a search may take', () => {
    const session = begun({ ...EXTERNAL, timeoutMs: 600_000 });
    const [search] = [...session.open.values()];
    expect(Number(search?.inputs.deadlineAtMs) - Number(search?.createdAtMs)).toBe(90_000);
  });
});

function begun(search = EXTERNAL, policies = [testPolicy('leak')]): EngineSession {
  const session = new EngineSession(testEngineDocuments({ policies, search }));
  session.say('It leaks');
  return session;
}

const id = ({ turnId }: EngineSession, number: number) => `${turnId}-${number}`;
const kindsOf = ({ open }: EngineSession) => [...open.values()].map(({ kind }) => kind);

function overdue(session: EngineSession, callId: string): void {
  session.apply({ ...header, type: 'effect.overdue', commandId: `${callId}-overdue`, ...actorFields(session.turnId), callId, kind: 'search' });
}
