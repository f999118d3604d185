import { describe, expect, it } from 'vitest';
import { disambiguate } from './disambiguate.ts';

const item = {
  id: 'card-lost',
  condition: 'the customer lost a card',
  action: null,
  options: [
    { reference: 'policy:bank', text: 'block the bank card' },
    { reference: 'routine:member', text: 'order a membership card' },
    { reference: 'policy:gift', text: 'refund the gift card' },
  ],
};

describe('rule 10: an ambiguity', () => {
  it('names the condition and the options by ordinals, never by ids', () => {
    const text = String(disambiguate.render(view, [item]).messages.at(-1)?.content);

    expect(text).toContain('{"condition":"the customer lost a card"}\n{"id":1,"option":"block the bank card"}\n{"id":2,');
    expect(text).not.toMatch(/policy:|routine:|card-lost/);
  });

  it('the agent asks which of the possible options is meant', () => {
    expect(read({})).toEqual({
      verdicts: [{ id: 'card-lost', applies: true, rationale: 'unclear' }],
      clarification: { action: 'Ask which card.', options: ['policy:bank', 'routine:member'] },
    });
  });

  it.each<[string, object]>([
    ['the condition does not hold', { ambiguity_condition_met: false }],
    ['the customer has said which', { customer_resolved: true }],
    ['the model finds it clear', { is_ambiguous: false }],
    ['only one option is possible', { options: optionsOf(true, false, false) }],
    ['no option is possible', { options: optionsOf(false, false, false) }],
  ])('the agent asks nothing when %s', (_, fields) => {
    expect(read(fields)?.clarification).toBeNull();
  });

  it('the policy holds as an observation when its condition does, ambiguous or not', () => {
    expect(read({ is_ambiguous: false })?.verdicts).toMatchObject([{ applies: true }]);
    expect(read({ ambiguity_condition_met: false })?.verdicts).toMatchObject([{ applies: false }]);
  });

  it('words the question itself when the model did not', () => {
    expect(read({ clarification_action: ' \u200b ' })?.clarification?.action).toBe(
      'Ask the customer which of these they mean: block the bank card; order a membership card',
    );
  });

  it('bounds the question', () => {
    expect(read({ clarification_action: 'x'.repeat(100_000) })?.clarification?.action).toHaveLength(1_000);
  });

  it.each<[string, object]>([
    ['a missing option', { options: optionsOf(true, true) }],
    ['an invented option', { options: optionsOf(true, true, true, true) }],
    ['a repeated option', { options: [...optionsOf(true, true), { id: 2, is_possible: true }] }],
    ['no options', { options: [] }],
    ['another shape', { options: 'both' }],
  ])('rule 3: an answer with %s is malformed', (_, fields) => {
    expect(read(fields)).toBeNull();
  });
});

function optionsOf(...possible: boolean[]) {
  return possible.map((is, index) => ({ id: index + 1, is_possible: is }));
}

function read(fields: object) {
  const answer = {
    rationale: 'unclear',
    ambiguity_condition_met: true,
    disambiguation_requested: false,
    customer_resolved: false,
    is_ambiguous: true,
    options: optionsOf(true, true, false),
    clarification_action: 'Ask which card.',
    ...fields,
  };
  const found = disambiguate.read({ text: JSON.stringify(answer), toolCalls: [], finishReason: 'stop' }, [item]);
  return found.type === 'read' ? found.answer : null;
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
