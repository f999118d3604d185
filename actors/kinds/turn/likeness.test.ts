import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import { bundleBody } from '#shared/config/bundle-body.ts';
import { type EngineDocuments, engineDocumentsOf } from '../../engine/engine-documents.ts';
import { noEvaluations } from '../../engine/evaluation/evaluation-set.ts';
import { header } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { decodeSnapshot, encodeSnapshot, MACHINE_VERSION } from '../snapshots.ts';
import { openLikeness } from './likeness-states.ts';

const secret = '$' + '{SECRET}';
const v1 = (id: string) => ({ id, version: 1 });
const routine = (id: string, text: string) => ({
  ...{ ...v1(id), title: id, conditions: [text], steps: [{ kind: 'chat', id: 'ask', chat_state: 'Ask.' }], transitions: [] },
});
const policies = [
  { ...v1('any'), condition: 'the customer greets', action: 'greet' },
  { ...v1('price'), condition: 'a price is asked for', action: 'say it', routines: ['order'] },
  { ...v1('reason'), condition: 'a reason is given', action: 'thank', routines: ['return'] },
];
const search = { hostname: 'db', port: 5_432, password: secret, collection: 'docs', embedding_model: 'a/vectors', embedding_dimensions: 2 };

/** `order` is near to [1, 0], `return` to [0, 1]; terms by their number. */
function documentsOf({ terms = 1, hasVectors = true } = {}): EngineDocuments {
  const body = bundleBody.parse({
    manifest: {
      ...{ id: 'a', name: 'A', version: '1' },
      agent_config: {
        ...{ runtime: { api_key: secret }, platform: { public_key: secret, secret_key: secret }, llms: { default: 'a/b', api_key: secret }, search },
        context: { system_prompt: v1('p'), language: 'match_user', policies: policies.map(({ id }) => v1(id)), glossaries: [v1('words')] },
      },
    },
    documents: {
      ...{ prompts: [], macros: [], variable_sets: [], policies },
      routines: [routine('order', 'wants a new machine'), routine('return', 'sends it back')],
      glossaries: [{ ...v1('words'), terms: Array.from({ length: terms }, (_, index) => ({ name: `t${index}`, description: 'd' })) }],
    },
  });
  const vectorsOf = ({ texts }: { texts: readonly string[] }) =>
    hasVectors ? new Float32Array(texts.flatMap((text) => (/^(order|t[0-4]\n)/.test(text) ? [1, 0] : [0, 1]))) : null;
  return { ...(engineDocumentsOf(body, { ...noEvaluations, set: 'e1', vectorsOf }) ?? expect.fail('no engine')), search: null };
}

const base64Of = (...values: number[]) => Buffer.from(new Float32Array(values).buffer).toString('base64');
const NEAR_ORDER = base64Of(1, 0.1);
const NEAR_RETURN = base64Of(0.1, 1);
/** By its words it is like `return`. */
const TEXT = 'I would have sent it back';

function begun(documents = documentsOf()): EngineSession {
  const session = new EngineSession(documents);
  session.say(TEXT);
  return session;
}

const id = ({ turnId }: EngineSession, number: number) => `${turnId}-${number}`;
const kindsOf = ({ open }: EngineSession) => [...open.values()].map(({ kind }) => kind);
/** Policies that the first pass judges, without conditions of routines. */
const judged = ({ asked }: EngineSession) => asked.flatMap((line) => line.match(/[[ ](any|price|reason)\b/g) ?? []).map((found) => found.slice(1));
const likenessOf = (session: EngineSession) => session.rows().filter(({ kind }) => kind === 'likeness');

function overdue(session: EngineSession, callId: string): void {
  session.apply({ ...header, type: 'effect.overdue', commandId: `${callId}-overdue`, ...actorFields(session.turnId), callId, kind: 'embed-messages' });
}

describe('a turn in which vectors decide what its message is like', () => {
  it('rules 12, 14: has a vector made of the message before anything is judged, and judges the policies of the routine that is nearest', () => {
    const session = begun();
    expect(kindsOf(session)).toEqual(['embed-messages']);
    expect(session.lines.slice(1)).toEqual(['acknowledged']);
    expect(session.open.get(id(session, 1))?.inputs).toMatchObject({ texts: ['message'], upToOffset: 1 });
    session.embedded(id(session, 1), NEAR_ORDER);

    expect(judged(session).sort()).toEqual(['any', 'price']);
    expect(session.lines.slice(1)).toEqual(['acknowledged', 'processing/matching']);
    expect(session.rows().slice(0, 2)).toMatchObject([
      { kind: 'began', likeliest: 'return', compares: ['message'], evaluations: 'e1' },
      { kind: 'likeness', key: 'likeness', likeliest: 'order', model: 'scripted/assistant', ms: 0, tokens: 12, failure: null },
    ]);
    expect([...session.timers.keys()].filter((key) => key.includes('overdue'))).toEqual([]);
    session.finish();
    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(likenessOf(session)).toHaveLength(1);
    expect(session.notes).toContain('likeness was decided by vectors (vectors)');
  });

  it.each<[string, (session: EngineSession) => void, object]>([
    ['fails', (session) => session.fail(id(session, 1)), { failure: 'unavailable', model: null }],
    ['never comes', (session) => overdue(session, id(session, 1)), { failure: 'unavailable', model: null }],
    ['is not in the result of an older worker', (session) => session.embedded(id(session, 1)), { failure: 'malformed' }],
    ['has other dimensions', (session) => session.embedded(id(session, 1), base64Of(1, 0, 0)), { failure: 'malformed' }],
    ['has numbers that are none', (session) => session.embedded(id(session, 1), base64Of(Number.NaN, 0)), { failure: 'malformed' }],
    ['is not base64', (session) => session.embedded(id(session, 1), '%%%'), { failure: 'malformed' }],
  ])('rule 14: shared words decide when the vector %s', (_, answer, row) => {
    const session = begun();
    answer(session);

    expect(likenessOf(session)).toMatchObject([row]);
    expect(likenessOf(session)[0]).not.toHaveProperty('likeliest');
    expect(judged(session).sort()).toEqual(['any', 'reason']);
    expect([...session.timers.keys()].filter((key) => key.includes('overdue'))).toEqual([]);
    session.finish();
    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.notes).toContain(`likeness is decided by shared words (${'failure' in row ? row.failure : ''})`);
  });

  it('rule 14: is waited for two seconds at most, and for an eighth of what a short turn has left', () => {
    const session = begun();
    const [call] = session.open.values();
    const timer = [...session.timers].find(([key]) => key.includes('overdue'));
    expect(Number(call?.inputs.deadlineAtMs) - Number(call?.createdAtMs)).toBe(1_750);
    expect(session.ring(timer?.[0] ?? '')).toBe(2_000);
    expect(likenessOf(session)).toMatchObject([{ failure: 'unavailable', ms: 2_000 }]);

    const short = (leftMs: number) => {
      const opened: { deadlineAtMs?: number; atMs?: number }[] = [];
      const engine = { stepCount: 1, pending: [], calls: 0, tokens: 0, status: null };
      openLikeness(({ params }) => void opened.push(params), { turnId: 'trn_1', deadlineAtMs: 1_000 + leftMs, callNo: 0, engine }, ['message'], 1_000);
      return opened.map(({ deadlineAtMs, atMs }) => (deadlineAtMs ?? atMs ?? 0) - 1_000);
    };
    expect(short(180_000)).toEqual([1_750, 2_000]);
    expect(short(4_000)).toEqual([250, 500]);
    expect(short(0)).toEqual([0, 0]);
  });

  it('rules 14, 101: a repeated or late result changes nothing', () => {
    const session = begun();
    session.embedded(id(session, 1), NEAR_ORDER);
    const before = [session.rows(), session.lines, kindsOf(session)];
    session.embedded(id(session, 1), NEAR_RETURN);
    session.fail(id(session, 1));
    overdue(session, id(session, 1));
    expect([session.rows(), session.lines, kindsOf(session)]).toEqual(before);
  });

  it('rules 14, 104: a message that joins is compared anew, and what was awaited is superseded', () => {
    const session = begun();
    session.say('a new one, please', 10);
    expect(session.aborted).toContain(id(session, 1));
    expect(kindsOf(session)).toEqual(['embed-messages']);
    expect([...session.timers.keys()].filter((key) => key.includes('overdue'))).toHaveLength(1);
    session.embedded(id(session, 1), NEAR_RETURN);
    expect(likenessOf(session)).toEqual([]);
    session.embedded(id(session, 2), NEAR_ORDER);
    session.say('at once', 10);
    expect(kindsOf(session)).toEqual(['embed-messages']);
    session.finish();
    expect(session.lines.filter((line) => line === 'ready')).toHaveLength(1);
  });

  it.each<[string, (session: EngineSession, turnId: string) => void]>([
    ['its deadline', (session, turnId) => session.deadline(turnId, 180_000)],
    ['a command that can not be applied', (session) => session.poison()],
    ['the deletion of its session', (session) => session.apply({ ...header, type: 'session.delete', commandId: 'd', unlessBusy: false } as never)],
  ])('rule 105: %s ends a turn that waits for it, and leaves no timer', (_, end) => {
    const session = begun();
    end(session, session.turnId);
    expect([...session.open.keys()]).toEqual([]);
    expect([...session.timers.keys()]).toEqual([]);
  });

  it('rule 105: a new message cancels it, and the next turn has a call of its own', () => {
    const session = begun();
    const first = session.turnId;
    session.say('Something else', 60_000);
    expect(session.aborted).toContain(`${first}-1`);
    expect(kindsOf(session)).toEqual(['embed-messages']);
    session.finish();
    expect(session.lines.filter((line) => line === 'ready')).toHaveLength(2);
  });

  it('rules 14, 121: makes no call for it before its message is checked', () => {
    const session = new EngineSession(documentsOf());
    const check = session.sayChecked(TEXT);
    expect(kindsOf(session)).toEqual(['moderation']);
    session.moderate(check, 'passed');
    expect(kindsOf(session)).toEqual(['embed-messages']);
    session.finish();
    expect(likenessOf(session)).toHaveLength(1);
  });

  it('rule 82: with more than 50 terms those nearest to the talk are chosen, also where a routine is followed', () => {
    const session = begun(documentsOf({ terms: 60 }));
    expect(session.open.get(id(session, 1))?.inputs).toMatchObject({ texts: ['message', 'talk'] });
    session.apply({ ...session.resultOf(id(session, 1), ''), vectors: [NEAR_RETURN, base64Of(1, 0)] });
    expect(likenessOf(session)).toMatchObject([{ likeliest: 'return', terms: [0, 1, 2, 3, 4] }]);
    expect(judged(session).sort()).toEqual(['any', 'reason']);
    session.finish(['routine:return:0']);

    session.say('And now?');
    expect(session.open.get(id(session, 1))?.inputs).toMatchObject({ texts: ['talk'] });
    session.embedded(id(session, 1), base64Of(1, 0));
    expect(likenessOf(session)).toMatchObject([{ terms: [0, 1, 2, 3, 4] }]);
    session.finish();
  });

  it('rule 14: one vector of two makes no decision by half', () => {
    const session = begun(documentsOf({ terms: 60 }));
    session.embedded(id(session, 1), NEAR_ORDER);
    expect(likenessOf(session)).toMatchObject([{ failure: 'malformed' }]);
    expect(judged(session).sort()).toEqual(['any', 'reason']);
  });
});

describe('a turn in which they decide nothing', () => {
  it('rule 12: a turn that follows a routine asks for no vector', () => {
    const session = begun();
    session.embedded(id(session, 1), NEAR_RETURN);
    session.finish(['routine:return:0']);
    session.say('And now?');
    expect(kindsOf(session)).not.toContain('embed-messages');
    expect(session.rows()[0]).not.toHaveProperty('compares');
  });

  it('rule 14: while the vectors are pending or have failed shared words decide at once, with the rows of before', () => {
    const session = begun(documentsOf({ terms: 60, hasVectors: false }));
    expect(kindsOf(session)).not.toContain('embed-messages');
    expect(judged(session).sort()).toEqual(['any', 'reason']);
    session.finish();
    expect(Object.keys(session.rows()[0] ?? {})).toEqual(['kind', 'state', 'likeliest', 'evaluations']);
    expect(session.rows().map(({ kind }) => kind)).not.toContain('likeness');
  });
});

describe('a stored turn', () => {
  it('DESIGN 5: rule 14: that waits for a vector goes on in another process as without the restart', () => {
    const session = begun();
    const other = JSON.parse(encodeSnapshot(session.state ?? expect.fail('no state'))) as { v: number };
    expect(other.v).toBe(MACHINE_VERSION);
    const decoded = decodeSnapshot({ id: 'ses_1', partition: 1, snapshot: other });
    session.state = { ...(session.state ?? expect.fail('no state')), actors: decoded };
    session.embedded(id(session, 1), NEAR_ORDER);
    expect(judged(session).sort()).toEqual(['any', 'price']);
  });

  it('DESIGN 5: that a host of the version before has begun goes on by shared words, and its hosts take none of this version', () => {
    const session = begun(documentsOf({ hasVectors: false }));
    const { v, ...actors } = JSON.parse(encodeSnapshot(session.state ?? expect.fail('no state'))) as { v: number };
    const decoded = decodeSnapshot({ id: 'ses_1', partition: 1, snapshot: { v: v - 100, ...actors } });
    expect(decoded).toEqual(decodeSnapshot({ id: 'ses_1', partition: 1, snapshot: { v, ...actors } }));
    session.state = { ...(session.state ?? expect.fail('no state')), actors: decoded };
    session.finish();
    expect(session.lines.slice(-2)).toEqual(['assistant_message a reply', 'ready']);
    expect(() => decodeSnapshot({ id: 'ses_1', partition: 1, snapshot: { v: v + 100, ...actors } })).toThrow(/known is/);
  });
});
