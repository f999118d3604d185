import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { EngineStep, StepView } from '../../step.ts';
import type { RoutineCall } from '../routine-calls.ts';
import { type RoutineItem, routineItem } from '../routine-items.ts';
import { chat, fork, modelOf, tool, way } from '../test-support/routines.ts';
import { checkBacktrack } from './check-backtrack.ts';
import { nextStep } from './next-step.ts';
import { selectNode } from './select-node.ts';

const model = modelOf(
  'booking',
  [chat('people'), fork('size'), chat('time'), chat('events'), tool('book'), chat('confirm')],
  [way('people', 'size'), way('size', 'time', 'At most 8'), way('size', 'events', 'More than 8'), way('time', 'book'), way('book', 'confirm')],
);
const itemOf = (call: Partial<RoutineCall> = {}): RoutineItem => {
  const at = { path: ['people'], at: 'people', prefix: [] };
  return routineItem(model, { kind: 'next-step', routineId: 'booking', pass: 1, evaluation: null, ...at, ...call });
};
const view: StepView = {
  callId: 'trn_1-1',
  nowMs: 0,
  agent: { id: 'a', name: 'Ada' },
  customerName: null,
  systemPrompt: 'Be kind.',
  language: 'match_user',
  glossary: [],
  variables: [],
  history: [],
  staged: [],
};

/** The lines of the last message. */
function linesOf(step: EngineStep<RoutineItem, unknown>, item: RoutineItem): unknown[] {
  const last = step.render(view, item).messages.at(-1)?.content;
  return String(last)
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
}
const read = (step: EngineStep<RoutineItem, unknown>, item: RoutineItem, answer: unknown) =>
  step.read({ text: typeof answer === 'string' ? answer : JSON.stringify(answer), toolCalls: [], finishReason: 'stop' }, item);
const schemaOf = ({ response_format: format }: Pick<ChatRequest, 'response_format'>) => (format?.type === 'json_schema' ? format.json_schema : null);

describe('rule 35: which step comes next', () => {
  it('is asked by ordinals, never by ids', () => {
    expect(linesOf(nextStep, itemOf())).toEqual([
      { routine: 'Routine booking', current_step: 'Say people.', taken: true },
      { id: '1', condition: 'The step is completed; and At most 8', step: 'Say time.' },
      { id: '2', condition: 'The step is completed; and More than 8', step: 'Say events.' },
    ]);
    expect(linesOf(nextStep, itemOf({ path: [], prefix: ['people'] }))[0]).toMatchObject({ taken: false });
    expect(linesOf(nextStep, itemOf({ path: [], at: 'size', prefix: ['size'] }))[0]).toMatchObject({ current_step: null, taken: false });
    expect(linesOf(nextStep, itemOf({ path: ['time'], at: 'time' })).at(-1)).toMatchObject({ step: 'Call s:book' });
  });

  it('is asked in the words of the evaluation where there is one', () => {
    const dependent = { is_customer_dependent: true, customer_action: null, agent_action: null };
    const evaluated = (follow: string[]) => ({
      internal_action: `Ask, ${follow.join(' ')}.`,
      customer_dependent_action_data: dependent,
      tool_running_only: false,
      follow_ups: [{ condition: 'It is a small party', path: follow }],
    });
    const nodes = { people: evaluated(['size', 'time']), time: evaluated(['book']) };
    const item = routineItem({ ...model, evaluation: { hash: 'h', value: { nodes } } }, { ...call(), evaluation: 'h' });
    expect(linesOf(nextStep, item)).toEqual([
      { routine: 'Routine booking', current_step: 'Ask, size time.', taken: true },
      { id: '1', condition: 'It is a small party', step: 'Ask, book.' },
    ]);
    expect(read(nextStep, item, { rationale: '', step_completed: true, choice: '1' })).toMatchObject({ answer: { follow: ['size', 'time'] } });
  });

  it('is answered by one of the choices', () => {
    expect(schemaOf(nextStep.render(view, itemOf()))).toMatchObject({
      name: 'next_step',
      schema: { properties: { choice: { enum: ['0', '1', '2', 'none'] } } },
    });
    const answers = [
      ['0', []],
      ['none', null],
      ['2', ['size', 'events']],
    ];
    for (const [choice, follow] of answers) {
      const answer = { kind: 'next-step', isCompleted: true, follow, rationale: 'because' };
      expect(read(nextStep, itemOf(), { rationale: 'because', step_completed: true, choice })).toEqual({ type: 'read', answer });
    }
  });

  it.each([['3'], ['-1'], ['1.0'], ['None'], ['people'], [''], [1], [null]])('is malformed with the choice %j', (choice) => {
    expect(read(nextStep, itemOf(), { rationale: '', step_completed: true, choice }).type).toBe('malformed');
  });
});

describe('rule 36: whether a routine goes back', () => {
  it('is asked by the steps that were taken', () => {
    const item = itemOf({ kind: 'backtrack', path: ['people', 'size', 'time', null], at: 'time' });
    expect(linesOf(checkBacktrack, item)).toEqual([{ routine: 'Routine booking' }, { id: 1, step: 'Say people.' }, { id: 2, step: 'Say time.' }]);
  });

  it('is answered by two booleans, and malformed without them', () => {
    const answer = { rationale: 'x'.repeat(5_000), requires_backtracking: true, same_process: false };
    expect(read(checkBacktrack, itemOf(), answer)).toEqual({
      type: 'read',
      answer: { kind: 'backtrack', requiresBacktracking: true, isSameProcess: false, rationale: 'x'.repeat(1_000) },
    });
    expect(read(checkBacktrack, itemOf(), { ...answer, same_process: undefined }).type).toBe('malformed');
  });
});

describe('rule 38: where a routine that goes back continues', () => {
  const item = itemOf({ kind: 'select-node', path: ['people', 'size', 'time'], at: 'time' });

  it('is asked with the steps around the visited ones, not with those beyond a tool step that was not reached', () => {
    expect(linesOf(selectNode, item)).toEqual([
      { routine: 'Routine booking' },
      {
        id: 1,
        step: 'Say people.',
        visited: true,
        followed_by: [
          { id: 2, condition: 'The step is completed; and At most 8' },
          { id: 3, condition: 'The step is completed; and More than 8' },
        ],
      },
      { id: 2, step: 'Say time.', visited: true, followed_by: [{ id: 4, condition: 'The step is completed' }] },
      { id: 3, step: 'Say events.', visited: false, followed_by: [] },
      { id: 4, step: 'Call s:book', visited: false, followed_by: [] },
    ]);
    expect(linesOf(selectNode, itemOf({ kind: 'select-node', path: ['people', 'size', 'time', 'book'], at: 'book' }))).toHaveLength(6);
  });

  it('is answered by ordinals of them', () => {
    expect(read(selectNode, item, { rationale: '', backtrack_to: 1, advanced: [2, 1], next_step: 4 })).toEqual({
      type: 'read',
      answer: { kind: 'select-node', target: 'people', advanced: ['time', 'people'], next: 'book', rationale: '' },
    });
    expect(read(selectNode, item, { rationale: '', backtrack_to: 2, advanced: [], next_step: 0 })).toMatchObject({ answer: { target: 'time', next: null } });
  });

  it.each([
    ['a target that was not visited', { backtrack_to: 3 }],
    ['a target that does not exist', { backtrack_to: 0 }],
    ['an unknown next step', { next_step: 5 }],
    ['a negative next step', { next_step: -1 }],
    ['an unknown step on the way', { advanced: [9] }],
    ['a fraction', { next_step: 1.5 }],
    ['very many steps', { advanced: Array.from({ length: 21 }, () => 1) }],
  ])('is malformed with %s', (_case, fields) => {
    expect(read(selectNode, item, { rationale: '', backtrack_to: 1, advanced: [], next_step: 2, ...fields }).type).toBe('malformed');
  });
});

describe('each question', () => {
  it.each([nextStep, checkBacktrack, selectNode])('is malformed without JSON', (step) => {
    for (const text of ['', 'yes', '[]', '{"rationale":', `{"a":"${'x'.repeat(1_000_000)}"}`]) expect(read(step, itemOf(), text).type).toBe('malformed');
  });
});

function call(): RoutineCall {
  return { kind: 'next-step', routineId: 'booking', pass: 1, path: ['people'], at: 'people', prefix: [], evaluation: null };
}
