import { describe, expect, it } from 'vitest';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { clientEvent } from '../../test-support/driven-session.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import { result } from '../../test-support/tool-turn.ts';

const LISTS = { shop: [{ name: 'order', title: null, description: null, inputSchema: { type: 'object' }, repeatable: true }] };

describe('a turn that has used up its budget', () => {
  it('rule 88: answers with what it has found out, when tools ask for another pass', () => {
    const { session, call } = matching(130, ['p0']);
    session.infer(call(131), ['shop__order', {}]);
    session.tool(call(132), result('sent'));
    expect([...session.open.values()].map(({ kind }) => kind)).toEqual(['router-call']);
    session.finish();

    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
    expect(session.rows().at(-1)).toMatchObject({ kind: 'resolved', policies: [{ id: 'p0' }], cutShort: 'budget' });
  });

  it('rule 88: makes the second pass that it can afford', () => {
    const { session, call } = matching(100, ['p0']);
    session.infer(call(101), ['shop__order', {}]);
    session.tool(call(102), result('sent'));

    expect(session.asked).toHaveLength(99);
  });

  it('rule 88: answers without tools, when none can be inferred any more', () => {
    const { session } = matching(256, ['p0']);
    session.finish();

    expect(session.rows().map(({ kind }) => kind)).not.toContain('infer-tools');
    expect(session.rows().at(-1)).toMatchObject({ cutShort: 'budget' });
    expect(session.lines.slice(-3)).toEqual(['typing', 'assistant_message a reply', 'ready']);
  });

  it('rule 88: also by tokens', () => {
    const { session, call } = matching(2, ['p0'], 3_000_000);
    session.infer(call(3), ['shop__order', {}]);
    session.finish();

    expect(session.rows().map(({ kind }) => kind)).toEqual(['began', 'match', 'match', 'resolved']);
  });

  it('rule 88: counts what was asked for once more', () => {
    const { session } = matching(255, ['p0'], 10, 'medium', 1);
    session.finish();

    expect(session.rows().map(({ kind }) => kind)).not.toContain('infer-tools');
    expect(session.rows().at(-1)).toMatchObject({ cutShort: 'budget' });
  });

  it('rule 88: sends a reply that can not be checked any more', () => {
    const { session, turnId } = matching(256, ['p0'], 10, 'high');
    session.finish();

    expect(session.lines.slice(-2)).toEqual(['assistant_message a reply', 'ready']);
    expect(session.rows(turnId).at(-1)).toEqual({ kind: 'unchecked', reason: 'over_budget' });
  });

  it('rule 88: fails when its policies can not be matched once', () => {
    const session = new EngineSession(documentsOf(257));
    session.say('Where is it?');

    expect(session.lines.at(-2)).toMatch(/^error .*more model calls or tokens/);
  });
});

it('rule 89: no turn begins before something was said: not with the session, nor with a front end’s event', () => {
  const session = new EngineSession(testEngineDocuments({ policies: [testPolicy('always', { condition: null })] }));
  session.apply(clientEvent({ kind: 'custom', data: { typed: true } }));

  expect(session.open.size).toBe(0);
  expect(session.log.map(({ kind }) => kind)).toEqual(['custom']);
});

function documentsOf(count: number, criticality: 'medium' | 'high' = 'medium') {
  const policies = Array.from({ length: count }, (_, index) => testPolicy(`p${index}`, { criticality, tools: index === 0 ? ['shop:order'] : [] }));
  return testEngineDocuments({ policies, batchSize: 1, reevaluationTools: ['shop:order'], toolServers: new Set(['shop']) });
}

/** A turn whose first pass made so many calls. @param promptTokens of each @param malformed calls that are answered so, and made once more */
function matching(count: number, applying: readonly string[], promptTokens = 10, criticality: 'medium' | 'high' = 'medium', malformed = 0) {
  const session = new EngineSession(documentsOf(count, criticality), LISTS);
  session.say('Where is it?');
  const { turnId } = session;
  for (const { id } of [...session.open.values()].slice(0, malformed)) session.apply({ ...session.resultOf(id, 'no JSON') });
  for (const { id, inputs } of [...session.open.values()]) {
    const { reference } = inputs as unknown as { reference: { policyIds: string[] } };
    const verdicts = reference.policyIds.map((policy, index) => ({ id: index + 1, rationale: 'r', applies: applying.includes(policy) }));
    session.apply({ ...session.resultOf(id, JSON.stringify({ verdicts })), usage: { promptTokens, completionTokens: 0 } });
  }
  return { session, turnId, call: (number: number) => `${turnId}-${number}` };
}
