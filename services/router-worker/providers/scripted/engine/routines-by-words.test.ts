import { describe, expect, it } from 'vitest';
import { answerBySchema } from './answer-by-schema.ts';

const FENCE = '=====trn_1=====';
const fenced = (lines: object[]) => ['The lines:', FENCE, ...lines.map((line) => JSON.stringify(line)), FENCE].join('\n');
const answerTo = (name: string, latest: string, items: object[]) =>
  answerBySchema(
    name,
    [
      fenced([
        { from: 'agent', text: 'Hello!' },
        { from: 'customer', text: latest },
      ]),
    ],
    fenced(items),
  );

describe('questions about routines', () => {
  const current = { routine: 'Return', current_step: 'Ask for the day', taken: true };
  const followUps = [
    { id: '1', condition: 'The step is completed; and The order was delivered at most 30 days ago', step: 'Ask for the reason' },
    { id: '2', condition: 'The step is completed', step: 'Say goodbye' },
  ];

  it.each([
    ['a condition shares words', 'It was delivered 30 days ago', true, '1', true],
    ['no condition does, and the step was taken', 'AC12345678', true, '2', true],
    ['the step was not taken', 'AC12345678', false, '0', false],
    ['a condition shares words with a step that was not taken', 'delivered 10 days ago', false, '1', true],
  ])('next_step: %s', (_case, latest, taken, choice, completed) => {
    expect(answerTo('next_step', latest, [{ ...current, taken }, ...followUps])).toMatchObject({ choice, step_completed: completed });
  });

  it('next_step: a last step is completed once it was taken', () => {
    expect(answerTo('next_step', 'thanks', [current])).toMatchObject({ choice: '0', step_completed: true });
    expect(answerTo('next_step', 'thanks', [{ ...current, taken: false }])).toMatchObject({ choice: '0', step_completed: false });
  });

  it.each([
    ['Sorry, it is AC87654321', true, true],
    ['I want to return another one', true, false],
    ['AC12345678', false, true],
  ])('check_backtrack: %s', (latest, requires, same) => {
    expect(answerTo('check_backtrack', latest, [current])).toMatchObject({ requires_backtracking: requires, same_process: same });
  });

  it('select_node: the visited step that the message is about, else the last one', () => {
    const steps = [
      { routine: 'Return' },
      { id: 1, step: 'Ask for the order number', visited: true },
      { id: 2, step: 'Ask for the reason', visited: true },
      { id: 3, step: 'Explain the number of labels', visited: false },
    ];
    expect(answerTo('select_node', 'the order number was wrong', steps)).toMatchObject({ backtrack_to: 1, advanced: [], next_step: 1 });
    expect(answerTo('select_node', 'sorry', steps)).toMatchObject({ backtrack_to: 2, next_step: 2 });
  });
});

describe('questions about documents', () => {
  it('evaluate_node: the texts as they are, with each follow-up', () => {
    const lines = [
      { routine: 'Return', kind: 'tool', instruction: 'Look it up.' },
      { id: 1, condition: 'It is there', step: 'Say so' },
      { id: 2, condition: 'It is not', step: 'Say so' },
    ];
    expect(answerTo('evaluate_node', '', lines)).toMatchObject({
      instruction: 'Look it up.',
      customer_dependent: false,
      only_runs_tools: true,
      follow_ups: [
        { id: 1, condition: 'It is there' },
        { id: 2, condition: 'It is not' },
      ],
    });
  });

  it.each([
    ['never name a price', true, false],
    ['ask for a photo', false, true],
  ])('evaluate_policy: %s', (action, continuous, dependent) => {
    expect(answerTo('evaluate_policy', '', [{ condition: 'it leaks', action }])).toMatchObject({
      continuous,
      customer_dependent: dependent,
      instruction: action,
    });
  });
});
