import { describe, expect, it } from 'vitest';
import { matchSteps } from '../match-steps.ts';
import { judgeApplied } from './judge-applied.ts';

const item = { id: 'p', condition: 'c', action: 'a', options: [] };

type Case = [findings: string, applies: boolean, why: string];

describe('rule 7: a policy that was applied', () => {
  it.each<Case>([
    ['+++', true, 'the condition holds again, and the action was not taken'],
    ['+-+', true, 'the condition holds again'],
    ['-++', true, 'the action was not taken'],
    ['+--', false, 'it is not worth a repetition'],
    ['-+-', false, 'the action is not needed any more'],
    ['---', false, 'nothing is new'],
    ['--+', false, 'the answer contradicts itself'],
  ])('%s applies: %s, %s', (findings, applies) => {
    expect(applicationOf('previously-applied', ['condition_met_again', 'action_wasnt_taken', 'should_reapply'], findings)).toBe(applies);
  });
});

describe('rule 8: a policy that was applied and depends on the customer', () => {
  it.each<Case>([
    ['++--+', true, 'the customer has not answered'],
    ['--+++', true, 'there is a new reason'],
    ['+++++', true, 'both'],
    ['+---+', false, 'the customer has answered, and there is no new reason'],
    ['-+--+', false, 'the need has gone'],
    ['--+-+', false, 'the fact is known and does not change'],
    ['++---', false, 'the customer turned to another topic'],
    ['--++-', false, 'the answer contradicts itself'],
  ])('%s applies: %s, %s', (findings, applies) => {
    const names = ['condition_still_met', 'customer_should_reply', 'condition_met_again', 'action_should_reapply', 'should_apply'];

    expect(applicationOf('customer-dependent', names, findings)).toBe(applies);
  });
});

it('rule 9: a policy of low criticality has a verdict without a rationale', () => {
  const step = matchSteps['low-criticality'];
  const text = JSON.stringify({ verdicts: [{ id: 1, applies: true }] });

  expect(step.read(reply(text), [item])).toEqual({
    type: 'read',
    answer: { verdicts: [{ id: 'p', applies: true, rationale: null }], clarification: null },
  });
  expect(JSON.stringify(step.render(view, [item]).response_format)).not.toContain('rationale');
});

it('rule 6: an action that was never taken is judged by its condition', () => {
  expect(String(matchSteps.actionable.render(view, [item]).messages[0]?.content)).toContain('Judge as if the action had never been taken');
});

it('rule 4: the questions differ in template, schema name and instructions', () => {
  const rendered = [...Object.values(matchSteps), judgeApplied].map((step) => {
    const { messages, response_format: format } = step.render(view, [item]);
    return { template: step.template, name: format?.type === 'json_schema' ? format.json_schema.name : '', instructions: String(messages[0]?.content) };
  });

  for (const field of ['template', 'name', 'instructions'] as const) expect(new Set(rendered.map((one) => one[field])).size).toBe(7);
  for (const { template, name } of rendered) expect(template).toBe(`${name.replaceAll('_', '-')}@1`);
});

it.each(Object.entries(matchSteps))('rule 3: %s: an answer that lacks the item or has another shape is malformed', (_, step) => {
  const two = [item, { ...item, id: 'q' }];

  for (const text of ['', 'null', '{}', '{"verdicts":[]}', '{"verdicts":[{}]}', '{"verdicts":[{"id":1,"applies":true,"rationale":""}],"options":[]}']) {
    expect(step.read(reply(text), two)).toMatchObject({ type: 'malformed' });
  }
});

function applicationOf(name: 'previously-applied' | 'customer-dependent', fields: string[], findings: string): boolean | undefined {
  const row = Object.fromEntries(fields.map((field, index) => [field, findings[index] === '+']));
  const read = matchSteps[name].read(reply(JSON.stringify({ verdicts: [{ id: 1, rationale: 'r', ...row }] })), [item]);
  return read.type === 'read' ? read.answer.verdicts[0]?.applies : undefined;
}

function reply(text: string) {
  return { text, toolCalls: [], finishReason: 'stop' };
}

const view = {
  callId: 'trn_1-1',
  nowMs: 0,
  agent: { id: 'acme', name: 'Acme' },
  customerName: null,
  systemPrompt: 'Be kind.',
  language: 'match_user',
  glossary: [],
  variables: [],
  history: [],
  staged: [],
};
