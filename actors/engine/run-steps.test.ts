import { describe, expect, it } from 'vitest';
import { type Routine, routine } from '#shared/contracts/documents/routine.ts';
import { runStepsText } from './run-steps.ts';
import { selectorsOf } from './run-tools.ts';

const documents = { macros: [{ ...{ id: 'desk', version: 1, value: 'the help desk', variable: null } }], variable_sets: [] } as never;

function withSteps(steps: readonly object[], more: object = {}): Routine {
  return routine.parse({ id: 'triage', version: 1, kind: 'autonomous', instructions: 'Sort it.', steps, ...more });
}

const textOf = (given: Routine) => runStepsText(given, documents, (toolId) => toolId.replace(':', '__'));

describe('the steps of a run', () => {
  it('rule 133: are numbered, with the ways on, conditions first, and macros expanded', () => {
    const steps = [
      { kind: 'tool', id: 'find', tool_state: ['crm:find', 'crm:size'], tool_instruction: 'Find the customer.' },
      { kind: 'fork', id: 'way' },
      { kind: 'chat', id: 'ask', chat_state: 'Write to ${desk}.' },
      { kind: 'tool', id: 'pay', tool_state: ['shop:pay'] },
    ];
    const transitions = [
      { from: 'find', to: 'way' },
      { from: 'way', to: 'ask', when: 'it is unclear' },
      { from: 'way', to: 'pay', when: 'it is due' },
      { from: 'way', to: 'end' },
      { from: 'ask', to: 'find', when: 'there is an answer' },
    ];

    expect(textOf(withSteps(steps, { transitions })).split('\n').slice(3)).toEqual([
      '   - go on with step 1',
      '1. Call crm__find, crm__size. Find the customer.',
      '   - go on with step 2',
      '2. Decide how to go on.',
      '   - if it is unclear: go on with step 3',
      '   - if it is due: go on with step 4',
      '   - otherwise: the steps are done',
      '3. Write to the help desk.',
      '   - if there is an answer: go on with step 1',
      '4. Call shop__pay.',
      '   - the steps are done',
    ]);
  });

  it('rule 133: begin where the document says', () => {
    const steps = ['a', 'b'].map((id) => ({ kind: 'chat', id, chat_state: id.toUpperCase() }));
    const transitions = [{ from: 'b', to: 'a' }];

    expect(
      textOf(withSteps(steps, { initial_step: 'b', transitions }))
        .split('\n')
        .slice(2, 5),
    ).toEqual(['Beginning:', '   - go on with step 2', '1. A']);
  });

  it('rule 133: are nothing without steps, and their tools may be called beside those of the routine', () => {
    expect(textOf(withSteps([]))).toBe('');
    const steps = [{ kind: 'tool', id: 'pay', tool_state: ['shop:pay', 'crm:find'] }];
    expect(selectorsOf(withSteps(steps, { tools: ['crm:find', 'mail:*'] }))).toEqual(['crm:find', 'mail:*', 'shop:pay']);
  });
});
