import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import type { SearchPlan } from '../../engine/retrieval/search-plan.ts';
import { header } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import type { ToolOutcome } from '../../tool-loop/types.ts';

const PGVECTOR: SearchPlan = { first: 'rewrite-query', maxMessages: 0, timeoutMs: 10_000 };
const VECTOR = 'AACAPwAAAAA=';
const DOCUMENT = { content: 'Hoses have two years of warranty.', title: null, url: null };
const FOUND: ToolOutcome = { type: 'result', data: { documents: [DOCUMENT] }, metadata: {}, isError: false };

describe('a turn that searches by meaning', () => {
  it('rule 77: has its query made by a model, then its vector, then the documents, each of them a row', () => {
    const session = begun();
    expect(kindsOf(session)).toEqual(['rewrite-query', 'turn-step']);
    session.reply(id(session, 1), '{"query":"warranty of hoses"}');
    session.judge(id(session, 2), ['leak']);
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/matching', 'processing/retrieving']);
    expect(kindsOf(session)).toEqual(['embed']);
    session.embedded(id(session, 3), VECTOR);
    expect(kindsOf(session)).toEqual(['search']);
    session.tool(id(session, 4), FOUND);
    expect(kindsOf(session)).toEqual(['router-call']);
    session.finish();

    expect(session.rows().map(({ kind }) => kind)).toEqual(['began', 'query', 'match', 'resolved', 'embedding', 'search']);
    expect(session.rows().filter(({ kind }) => ['query', 'embedding', 'search'].includes(kind))).toEqual([
      { kind: 'query', key: 'query', query: 'warranty of hoses', model: 'scripted/assistant', ms: 0, tokens: 12, failure: null },
      { kind: 'embedding', key: 'embedding', model: 'scripted/assistant', ms: 0, tokens: 12, vector: VECTOR },
      { kind: 'search', key: 'search', ms: 0, documents: [DOCUMENT], failure: null },
    ]);
    expect(session.lines.slice(4)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.notes).toContain('a search has its query (rewritten)');
  });

  it.each<[string, (session: EngineSession) => void, object]>([
    ['is malformed', (session) => session.reply(id(session, 1), 'warranty'), { query: null, failure: 'malformed' }],
    ['has 2,001 characters', (session) => session.reply(id(session, 1), JSON.stringify({ query: 'q'.repeat(2_001) })), { query: null, failure: 'malformed' }],
    ['is empty', (session) => session.reply(id(session, 1), '{"query":" "}'), { query: null, failure: 'malformed' }],
    ['fails', (session) => session.fail(id(session, 1)), { query: null, failure: 'unavailable', model: null }],
    ['never comes', (session) => overdue(session, id(session, 1), 'rewrite-query'), { query: null, failure: 'unavailable', model: null }],
  ])('rule 77: the customer’s own words are searched for when the query %s', (_, answer, row) => {
    const session = begun([]);
    answer(session);
    expect(kindsOf(session)).toEqual(['embed']);
    expect(session.rows().filter(({ kind }) => kind === 'query')).toMatchObject([row]);
    session.embedded(id(session, 2), VECTOR);
    session.tool(id(session, 3), FOUND);
    session.finish();
    expect(session.rows().at(-1)).toMatchObject({ kind: 'search', documents: [DOCUMENT] });
  });

  it.each<[string, (session: EngineSession) => void]>([
    ['fails', (session) => session.fail(id(session, 2))],
    ['never comes', (session) => overdue(session, id(session, 2), 'embed')],
    ['is not in the result of an older worker', (session) => session.embedded(id(session, 2))],
  ])('rules 72, 78: replies without documents, counted, when the vector %s', (_, answer) => {
    const session = begun([]);
    session.reply(id(session, 1), '{"query":"q"}');
    answer(session);
    expect(kindsOf(session)).toEqual(['router-call']);
    session.finish();

    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.rows().at(-1)).toMatchObject({ kind: 'search', documents: [], failure: 'no_embedding' });
    expect(session.notes).toContain('a search has no vector: the turn replies without documents (no_embedding)');
  });

  it('rule 72: a repeated or late result of a stage changes nothing', () => {
    const session = begun([]);
    for (let repeat = 0; repeat < 3; repeat += 1) session.reply(id(session, 1), '{"query":"q"}');
    overdue(session, id(session, 1), 'rewrite-query');
    for (let repeat = 0; repeat < 3; repeat += 1) session.embedded(id(session, 2), VECTOR);
    session.fail(id(session, 2));
    expect(kindsOf(session)).toEqual(['search']);
    session.finish();
    expect(session.rows().map(({ kind }) => kind)).toEqual(['began', 'resolved', 'query', 'embedding', 'search']);
  });

  it('rule 71: a query takes half of the ten seconds at most, and the whole search never more than half of the turn', () => {
    const session = begun([]);
    const deadlines = () => [...session.open.values()].map(({ createdAtMs, inputs }) => Number(inputs.deadlineAtMs) - createdAtMs);
    expect(deadlines()).toEqual([5_000]);
    session.pause(4_000);
    session.reply(id(session, 1), '{"query":"q"}');
    expect(deadlines()).toEqual([6_000]);
    session.pause(1_000);
    session.embedded(id(session, 2), VECTOR);
    expect(deadlines()).toEqual([5_000]);

    const slow = new EngineSession(testEngineDocuments({ policies: [], search: { ...PGVECTOR, timeoutMs: 600_000 } }));
    slow.say('It leaks');
    expect([...slow.open.values()].map(({ createdAtMs, inputs }) => Number(inputs.deadlineAtMs) - createdAtMs)).toEqual([45_000]);
  });

  it.each([1, 2])('rule 71: a search whose time is over before its stage %i has ended asks for nothing more', (stage) => {
    const session = begun([]);
    if (stage === 2) session.reply(id(session, 1), '{"query":"q"}');
    session.pause(10_000);
    if (stage === 1) session.reply(id(session, 1), '{"query":"q"}');
    else session.fail(id(session, 2));
    expect(kindsOf(session)).toEqual(['router-call']);
    expect(session.rows().at(-1)).toMatchObject({ kind: 'search', documents: [], failure: 'timeout' });
  });

  it.each([1, 2, 3])('rule 73: a message that joins in stage %i begins the search anew, with the query', (stage) => {
    const session = begun([]);
    if (stage > 1) session.reply(id(session, 1), '{"query":"q"}');
    if (stage > 2) session.embedded(id(session, 2), VECTOR);
    session.say('The hose, I mean', 10);

    expect(kindsOf(session)).toEqual(['rewrite-query']);
    expect(session.aborted).toContain(id(session, stage));
    session.reply(id(session, 1), '{"query":"late"}');
    expect(session.rows().at(-1)).toMatchObject({ kind: 'resolved' });
    session.finish();
    expect(session.lines.filter((line) => line === 'ready')).toHaveLength(1);
  });

  it.each([1, 2, 3])('rule 73: ends with its turn in stage %i, and leaves no timer', (stage) => {
    const session = begun([]);
    const { turnId } = session;
    if (stage > 1) session.reply(id(session, 1), '{"query":"q"}');
    if (stage > 2) session.embedded(id(session, 2), VECTOR);
    session.deadline(turnId, 180_000);

    expect(session.lines.at(-1)).toBe('ready');
    expect([...session.open.keys()]).toEqual([]);
    expect([...session.timers.keys()]).toEqual([]);
  });
});

function begun(policies = [testPolicy('leak')]): EngineSession {
  const session = new EngineSession(testEngineDocuments({ policies, search: PGVECTOR }));
  session.say('It leaks');
  return session;
}

const id = ({ turnId }: EngineSession, number: number) => `${turnId}-${number}`;
const kindsOf = ({ open }: EngineSession) => [...open.values()].map(({ kind }) => kind);

function overdue(session: EngineSession, callId: string, kind: string): void {
  session.apply({ ...header, type: 'effect.overdue', commandId: `${callId}-overdue`, ...actorFields(session.turnId), callId, kind });
}
