import { describe, expect, it } from 'vitest';
import { bundleBody } from '#shared/config/bundle-body.ts';
import type { ConversationEvent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import { engineDocumentsOf } from '../engine-documents.ts';
import { documentKeys, noEvaluations } from '../evaluation/evaluation-set.ts';
import { comparedTexts, textBatches } from './compared-texts.ts';
import { compare, saidTextsFor } from './likeness.ts';
import { textSaid } from './said-text.ts';

const secret = '$' + '{SECRET}';
const v1 = (id: string) => ({ id, version: 1 });
const table = { type: 'pgvector', hostname: 'db', port: 5_432, password: secret, collection: 'docs', embedding_model: 'a/vectors', embedding_dimensions: 2 };
const terms = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `name${index}`, description: `d${index}`, synonyms: [`alias${index}`] }));
const ROUTINES = [
  { ...v1('order'), title: 'Order', conditions: ['The customer orders'], steps: [{ kind: 'chat', id: 'ask', chat_state: 'Ask what.' }], transitions: [] },
  { ...v1('gone'), enabled: false, conditions: ['No'], steps: [{ kind: 'chat', id: 'ask', chat_state: 'Ask.' }], transitions: [] },
  { ...v1('report'), kind: 'autonomous', instructions: 'A report', output_schema: { type: 'object' } },
  { ...v1('return'), title: 'Return', conditions: ['The customer returns'], steps: [{ kind: 'chat', id: 'ask', chat_state: 'Ask why.' }], transitions: [] },
];
const policy = (id: string, ...routines: string[]) => ({ ...v1(id), condition: 'c', action: 'a', routines });
const POLICIES = [policy('price', 'order'), policy('reason', 'return')];

function bodyWith({ policies = POLICIES, terms: count = 1, search = table as object | null } = {}) {
  const context = { policies: policies.map(({ id }) => v1(id)), glossaries: [v1('words')] };
  return bundleBody.parse({
    manifest: {
      ...{ id: 'a', name: 'A', version: '1' },
      agent_config: {
        ...{ runtime: { api_key: secret }, platform: { public_key: secret, secret_key: secret }, llms: { default: 'a/b', api_key: secret }, search },
        context: { system_prompt: v1('p'), language: 'match_user', ...context },
      },
    },
    documents: { prompts: [], routines: ROUTINES, policies, glossaries: [{ ...v1('words'), terms: terms(count) }], macros: [], variable_sets: [] },
  });
}

describe('what is compared by vectors', () => {
  it('rules 12, 14: the conversational routines, where the policies of several may be judged', () => {
    const texts = ['Order\n\nThe customer orders\n Ask what.', 'Return\n\nThe customer returns\n Ask why.'];
    expect(comparedTexts(bodyWith())?.routines.flatMap((batch) => batch.texts)).toEqual(texts);
    expect(comparedTexts(bodyWith({ policies: [policy('price', 'order')] }))).toBeNull();
    expect(comparedTexts(bodyWith({ policies: [policy('price', 'order'), policy('late', 'report'), policy('all')] }))).toBeNull();
  });

  it('rules 14, 82: the terms, where there are more than 50', () => {
    expect(comparedTexts(bodyWith({ terms: 50 }))?.terms).toEqual([]);
    const batches = comparedTexts(bodyWith({ terms: 70 }))?.terms ?? [];
    expect(batches.map(({ texts }) => texts.length)).toEqual([32, 32, 6]);
    expect(batches[1]?.texts[0]).toBe('name32\nalias32\nd32');
  });

  it('rule 14: nothing without an embedding_model, so that the evaluations of such an agent are those of before', () => {
    const external = { type: 'external', hostname: 'http://127.0.0.1', port: 1, path: '/' };
    for (const search of [null, external]) expect(textBatches(bodyWith({ terms: 70, search }))).toEqual([]);
    const few = { policies: [policy('price', 'order')], terms: 50 };
    expect(documentKeys(bodyWith(few))).toEqual(documentKeys(bodyWith({ ...few, search: null })));
    expect(documentKeys(bodyWith())).toHaveLength(documentKeys(bodyWith({ search: null })).length + 1);
  });

  it('rule 47: a batch is known by its texts, the model and the dimensions', () => {
    const keyOf = (changes: object) => textBatches(bodyWith({ search: { ...table, ...changes } })).map(({ key }) => key);
    const keys = [{}, { embedding_model: 'a/other' }, { embedding_dimensions: 3 }].flatMap(keyOf);
    expect(new Set(keys).size).toBe(3);
    expect(keyOf({ top_k: 9 })).toEqual([keys[0]]);
  });

  it('rule 14: of a long text its beginning; and nothing of an agent whose vectors would take more than 16 MiB', () => {
    const long = bodyWith();
    const [order] = long.documents.routines;
    if (order !== undefined) order.description = 'x'.repeat(20_000);
    expect(textBatches(long)[0]?.texts.map(({ length }) => length)[0]).toBe(8_000);
    const large = comparedTexts(bodyWith({ search: { ...table, embedding_dimensions: 3 * 1024 * 1024 } }));
    expect(large).toMatchObject({ isTooLarge: true, routines: [], terms: [] });
    expect(comparedTexts(bodyWith())?.isTooLarge).toBe(false);
  });
});

describe('the vectors of an agent', () => {
  const [ORDER, RETURN] = [
    [1, 0],
    [0, 1],
  ];
  const documentsOf = (body: ReturnType<typeof bodyWith>, vectorsOf: (count: number) => number[] | null) =>
    engineDocumentsOf(body, {
      ...{ ...noEvaluations, set: 'e1' },
      vectorsOf: ({ texts }) => {
        const values = vectorsOf(texts.length);
        return values === null ? null : new Float32Array(values);
      },
    }) ?? expect.fail('no engine');
  const known = () => documentsOf(bodyWith(), () => [...(ORDER ?? []), ...(RETURN ?? [])]);

  it('rule 12: a turn has its message compared if no routine is followed', () => {
    expect(saidTextsFor(known(), {})).toEqual(['message']);
    expect(saidTextsFor(known(), { order: [null] })).toEqual(['message']);
    expect(saidTextsFor(known(), { order: ['ask'] })).toEqual([]);
    expect(saidTextsFor(known(), { elsewhere: ['ask'] })).toEqual(['message']);
  });

  it('rules 14, 82: without all vectors of the routines, or of the terms, shared words decide about these', () => {
    const pending = documentsOf(bodyWith({ terms: 70 }), (count) => (count === 6 ? null : Array.from({ length: count * 2 }, () => 1)));
    expect(saidTextsFor(pending, {})).toEqual(['message']);
    expect(
      saidTextsFor(
        documentsOf(bodyWith({ terms: 70 }), (count) => Array.from({ length: count * 2 }, () => 1)),
        {},
      ),
    ).toEqual(['message', 'talk']);
    expect(documentsOf(bodyWith(), () => null).likeness).toBeNull();
    expect(engineDocumentsOf(bodyWith({ terms: 70 }))?.likeness).toBeNull();
  });

  const base64Of = (...values: number[]) => Buffer.from(new Float32Array(values).buffer).toString('base64');

  it('rule 12: the likeliest routine is the one with the nearest vector', () => {
    expect(compare(known(), ['message'], [base64Of(0.2, 5)])).toEqual({ likeliest: 'return' });
    expect(compare(known(), ['message'], [base64Of(5, 0.2)])).toEqual({ likeliest: 'order' });
    expect(compare(known(), ['message'], [base64Of(-1, -1)])).toEqual({ likeliest: null });
  });

  it('rule 82: the terms are the nearest twenty, by their places', () => {
    const values = Array.from({ length: 70 }, (_, index) => (index % 3 === 0 ? [1, 0] : [0.1, 1]));
    let at = 0;
    const documents = documentsOf(bodyWith({ terms: 70, policies: [] }), (count) => {
      at += count;
      return values.slice(at - count, at).flat();
    });
    const places = Array.from({ length: 20 }, (_, index) => index * 3);
    expect(compare(documents, ['talk'], [base64Of(1, 0)])).toEqual({ terms: places });
  });

  it.each<[string, string[]]>([
    ['of other dimensions', [base64Of(1, 2, 3)]],
    ['of zeros', [base64Of(0, 0)]],
    ['of another number of texts', [base64Of(1, 2), base64Of(1, 2)]],
    ['that are not there', []],
  ])('rule 14: vectors %s can not be compared', (_, vectors) => {
    expect(compare(known(), ['message'], vectors)).toBeNull();
    expect(compare({ ...known(), likeness: null }, ['message'], [base64Of(1, 2)])).toBeNull();
  });
});

describe('what was said', () => {
  it('rules 12, 82: the newest message, and the last ten; never what is withheld from models', () => {
    const flagged = said('user_message', 'an insult', 'customer', { moderation: { flagged: true, tags: ['harassment'] } });
    const talk = [...Array.from({ length: 12 }, (_, index) => said('user_message', `m${index}`)), said('assistant_message', 'answer', 'ai_agent'), flagged];
    expect(textSaid('message', talk)).toBe('m11');
    expect(textSaid('talk', talk)).toBe([...Array.from({ length: 9 }, (_, index) => `m${index + 3}`), 'answer'].join('\n'));
    for (const which of ['message', 'talk'] as const) expect(textSaid(which, [flagged])).toBe('');
  });

  it('rule 14: of a long message the beginning, of a long talk the end', () => {
    const long = [said('user_message', `first ${'x'.repeat(9_000)}`), said('user_message', `last ${'y'.repeat(7_000)}`)];
    expect(textSaid('talk', long)).toHaveLength(8_000);
    expect(textSaid('talk', long)).toContain('last');
    expect(textSaid('message', [said('user_message', `first ${'x'.repeat(9_000)}`)])).toMatch(/^first x{7994}$/);
  });
});

function said(
  kind: 'user_message' | 'assistant_message',
  text: string,
  source: EventSource = 'customer',
  metadata: Record<string, unknown> = {},
): ConversationEvent {
  return { id: 'evt_1', offset: 0, created_at: '2026-01-01T00:00:00.000Z', source, trace_id: 'f'.repeat(32), metadata, kind, text };
}
