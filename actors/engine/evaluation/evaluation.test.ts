import { describe, expect, it } from 'vitest';
import { policy as policySchema } from '#shared/contracts/documents/policy.ts';
import { routine as routineSchema } from '#shared/contracts/documents/routine.ts';
import type { NodeEvaluation } from '../routines/routine-evaluation.ts';
import { chat, fork, modelOf, tool, way } from '../routines/test-support/routines.ts';
import { evaluateNode, type NodeItem } from './evaluate-node.ts';
import { evaluatePolicy } from './evaluate-policy.ts';
import { evaluationModel, itemKey, policyKey, routineKey } from './evaluation-keys.ts';
import { nodeItem, nodeTasks } from './node-tasks.ts';

const { graph, routine } = modelOf(
  'booking',
  [chat('people'), fork('size'), chat('time'), chat('events'), tool('book')],
  [way('people', 'size'), way('size', 'time', 'At most 8'), way('size', 'events', 'More than 8'), way('time', 'book'), way('book', 'people')],
);
const tasks = nodeTasks(graph);
const taskOf = (id: string) => tasks.find((task) => task.id === id) ?? { id, needs: new Set<string>() };

describe('rule 44: nodes are evaluated from the end of a routine to its root', () => {
  it('after the nodes that follow them, where a cycle is cut', () => {
    expect(tasks.map(({ id, needs }) => [id, [...needs].sort()])).toEqual([
      ['book', []],
      ['time', ['book']],
      ['events', []],
      ['people', ['book', 'events', 'time']],
      ['root', ['book', 'events', 'people', 'time']],
    ]);
  });

  it('in a routine of 200 steps with cycles', () => {
    const steps = Array.from({ length: 200 }, (_, index) => chat(`s${index}`));
    const ways = steps.flatMap(({ id }, index) => [way(id, `s${index + 1}`, 'on'), way(id, `s${Math.max(0, index - 7)}`, 'back'), way(id, 'end', 'over')]);
    const long = modelOf(
      'long',
      steps,
      ways.filter(({ to }) => to !== 's200'),
    );
    const order = nodeTasks(long.graph);
    expect(order).toHaveLength(201);
    const seen = new Set<string>();
    for (const { id, needs } of order) {
      for (const needed of needs) expect(seen.has(needed)).toBe(true);
      seen.add(id);
    }
  });

  it('with nothing asked about a tool step or the root, where no conditions are joined', () => {
    expect(nodeItem(graph, routine, taskOf('book'), new Map())).toBeNull();
    expect(nodeItem(graph, routine, taskOf('root'), new Map())).toBeNull();
  });
});

describe('rule 45: about a node', () => {
  const dependent: NodeEvaluation = {
    internal_action: 'Ask for the time.',
    customer_dependent_action_data: { is_customer_dependent: true, customer_action: 'The time is known', agent_action: null },
    tool_running_only: false,
    follow_ups: [],
  };
  const item = nodeItem(graph, routine, taskOf('people'), new Map([['time', dependent]])) as NodeItem;
  const answer = {
    instruction: ' Ask for how many people the table is. ',
    customer_dependent: true,
    customer_action: 'The number is known',
    agent_action: '',
    only_runs_tools: false,
    follow_ups: [3, 1, 2].map((id) => ({ id, condition: `condition ${id}` })),
  };

  it('the ways on are computed, with the results of the nodes after it, and shown by ordinals', () => {
    const { messages, response_format } = evaluateNode.render(item);
    expect(messages.at(-1)?.content).toBe(
      [
        'The step, and those that may follow, are the lines of JSON between the two lines =====evaluation=====.',
        '=====evaluation=====',
        '{"routine":"Routine booking","kind":"chat","instruction":"Say people."}',
        '{"id":1,"condition":"The step is completed; and At most 8","step":"Say time."}',
        '{"id":2,"condition":"The step is completed; and More than 8","step":"Say events."}',
        '{"id":3,"condition":"The step is completed; and At most 8; and This has been done already: The time is known; and The step is completed","step":"Call s:book"}',
        '=====evaluation=====',
      ].join('\n'),
    );
    expect(response_format).toMatchObject({ json_schema: { name: 'evaluate_node', strict: true } });
  });

  it('the model words the conditions, and no path', () => {
    expect(evaluateNode.read(JSON.stringify(answer), item)).toEqual({
      type: 'read',
      result: {
        internal_action: 'Ask for how many people the table is.',
        customer_dependent_action_data: { is_customer_dependent: true, customer_action: 'The number is known', agent_action: null },
        tool_running_only: false,
        follow_ups: [
          { condition: 'condition 1', path: ['size', 'time'] },
          { condition: 'condition 2', path: ['size', 'events'] },
          { condition: 'condition 3', path: ['size', 'time', 'book'] },
        ],
      },
    });
  });

  it.each([
    ['a follow-up is missing', { follow_ups: answer.follow_ups.slice(1) }],
    ['a follow-up is repeated', { follow_ups: [...answer.follow_ups, { id: 1, condition: 'again' }] }],
    ['a follow-up is invented', { follow_ups: [...answer.follow_ups, { id: 4, condition: 'new' }] }],
    ['a field is missing', { customer_dependent: undefined }],
  ])('an answer is malformed when %s', (_case, fields) => {
    expect(evaluateNode.read(JSON.stringify({ ...answer, ...fields }), item).type).toBe('malformed');
  });

  it('a condition without words stays as it is', () => {
    const read = evaluateNode.read(JSON.stringify({ ...answer, follow_ups: [1, 2, 3].map((id) => ({ id, condition: ' ' })) }), item);
    expect(read).toMatchObject({ result: { follow_ups: [{ condition: 'The step is completed; and At most 8' }, {}, {}] } });
  });
});

describe('rule 46: about a policy', () => {
  const item = { condition: 'you name a price', action: 'say it with tax' };
  const answer = {
    continuous: true,
    customer_dependent: false,
    is_agent_intention: true,
    agent_intention_condition: 'the agent names a price',
    instruction: 'x',
  };

  it('it is asked whether it is continuous, waits for the customer, and is about an intention of the agent', () => {
    const result = { continuous: true, customerDependent: false, agentIntentionCondition: 'the agent names a price', internalAction: 'x' };
    expect(evaluatePolicy.read(JSON.stringify(answer), item)).toEqual({ type: 'read', result });
    const other = { ...answer, is_agent_intention: false, instruction: ' ' };
    expect(evaluatePolicy.read(JSON.stringify(other), item)).toMatchObject({ result: { agentIntentionCondition: null, internalAction: null } });
    expect(evaluatePolicy.read('{}', item).type).toBe('malformed');
  });

  it('nothing is asked about one that only observes, always holds or is disabled', () => {
    const keyOf = (fields: object) => policyKey(policySchema.parse({ id: 'p', version: 1, ...fields }), 'm');
    expect(keyOf(item)).not.toBeNull();
    for (const fields of [{ condition: 'c' }, { action: 'a' }, { ...item, enabled: false }]) expect(keyOf(fields)).toBeNull();
  });
});

describe('rule 47: the key of an evaluation', () => {
  it('is that of the question’s template, the model and all that it shows', () => {
    const keys = [itemKey('t@1', 'm', { a: 1 }), itemKey('t@2', 'm', { a: 1 }), itemKey('t@1', 'n', { a: 1 }), itemKey('t@1', 'm', { a: 2 })];
    expect(new Set(keys).size).toBe(keys.length);
    expect(itemKey('t@1', 'm', { a: 1 })).toBe(keys[0]);
    const key = (fields: object, model = 'm') => policyKey(policySchema.parse({ id: 'p', version: 1, condition: 'c', action: 'a', ...fields }), model);
    expect(key({ id: 'q', version: 2, priority: 1 })).toBe(key({}));
    expect(new Set([key({}), key({}, 'n'), key({ condition: 'd' }), key({ action: 'b' })]).size).toBe(4);
  });

  const document = { id: 'r', version: 1, conditions: ['c'], steps: [chat('a'), chat('b')], transitions: [way('a', 'b')] };
  const keyOf = (fields: object, model = 'm') => routineKey(routineSchema.parse({ ...document, ...fields }), model);

  it('is that of the content: another version with the same steps has it, another text under the same ids has not', () => {
    expect(keyOf({ version: 2, labels: ['x'], priority: 3 })).toBe(keyOf({}));
    const others = [
      { steps: [chat('a'), { ...chat('b'), chat_state: 'Other' }] },
      { transitions: [way('a', 'b', 'when')] },
      { initial_step: 'a' },
      { title: 'T' },
      { description: 'D' },
    ];
    expect(new Set([keyOf({}), ...others.map((fields) => keyOf(fields))]).size).toBe(others.length + 1);
    expect(keyOf({}, 'another model')).not.toBe(keyOf({}));
    expect(keyOf({ enabled: false })).toBeNull();
    expect(routineKey(routineSchema.parse({ id: 'r', version: 1, kind: 'autonomous', instructions: 'i' }), 'm')).toBeNull();
  });

  it('has the evaluation model, else the default one', () => {
    const llms = { default: 'a/b', api_key: '', fallback: [], evaluation: null, evaluation_fallback: null };
    expect(evaluationModel({ llms })).toBe('a/b');
    expect(evaluationModel({ llms: { ...llms, evaluation: 'c/d' } })).toBe('c/d');
  });
});
