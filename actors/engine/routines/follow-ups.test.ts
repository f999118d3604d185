import { describe, expect, it } from 'vitest';
import type { Routine } from '#shared/contracts/documents/routine.ts';
import { followUpCandidates, followUpsOf, MAX_FOLLOW_UPS } from './follow-ups.ts';
import { graphOf } from './graph.ts';
import type { NodeEvaluation } from './routine-evaluation.ts';
import { chat, fork, modelOf, tool, way } from './test-support/routines.ts';

const { graph } = modelOf(
  'booking',
  [chat('people'), fork('size'), chat('time'), chat('events'), tool('book'), chat('confirm')],
  [
    way('people', 'size'),
    way('size', 'time', 'At most 8'),
    way('size', 'events', 'More than 8'),
    way('size', 'people'),
    way('time', 'book', 'There is a table'),
    way('time', 'end', 'There is none'),
    way('book', 'confirm'),
    way('confirm', 'end'),
  ],
);
const conditionsAndPaths = (id: string) => followUpsOf(graph, id, null).map(({ condition, path }) => [condition, ...path]);

const evaluationWith = (isCustomerDependent: boolean): NodeEvaluation => ({
  internal_action: null,
  customer_dependent_action_data: { is_customer_dependent: isCustomerDependent, customer_action: 'The customer has named it', agent_action: null },
  tool_running_only: false,
  follow_ups: [],
});

describe('rule 42: without an evaluation the follow-ups of a step', () => {
  it('are those after its transitions, with the conditions of forks joined', () => {
    expect(conditionsAndPaths('people')).toEqual([
      ['The step is completed; and At most 8', 'size', 'time'],
      ['The step is completed; and More than 8', 'size', 'events'],
      ['The step is completed; and None of the other conditions holds', 'size', 'people'],
    ]);
    expect(conditionsAndPaths('time')).toEqual([
      ['There is a table', 'book'],
      ['There is none', 'end'],
    ]);
    expect(conditionsAndPaths('book')).toEqual([['The step is completed', 'confirm']]);
  });

  it('are none where nothing comes after it', () => {
    expect(conditionsAndPaths('confirm')).toEqual([]);
    expect(conditionsAndPaths('events')).toEqual([]);
  });

  it('are bounded, nearer ones first, also with forks that lead to each other', () => {
    const forks = Array.from({ length: 12 }, (_, index) => fork(`f${index}`));
    const between = forks.flatMap(({ id: from }) => forks.filter(({ id }) => id !== from).map(({ id: to }) => way(from, to, `${from} ${to}`)));
    // A start refuses such a document; one that is stored may be of an earlier release.
    const transitions = [way('a', 'f0'), ...between, ...forks.map(({ id }) => way(id, 'b', `b of ${id}`))];
    const tangled = { steps: [chat('a'), ...forks, chat('b')], transitions: transitions.map((transition) => ({ id: null, ...transition })) };
    const found = followUpsOf(graphOf({ id: 'tangled', initial_step: null, ...tangled } as unknown as Routine), 'a', null);
    expect(found).toHaveLength(MAX_FOLLOW_UPS);
    expect(found[0]?.path).toEqual(['f0', 'b']);
  });
});

describe('rule 43: with an evaluation a way leads on', () => {
  const pathsOf = (model: typeof graph, id: string, dependent: (id: string) => boolean) =>
    followUpCandidates(model, id, (node) => evaluationWith(dependent(node))).map(({ path }) => path.join(' '));

  it('through steps that wait for the customer, whose answer may have been given', () => {
    expect(followUpCandidates(graph, 'people', (id) => evaluationWith(id === 'time')).map(({ condition, path }) => [condition, ...path])).toEqual([
      ['The step is completed; and At most 8', 'size', 'time'],
      ['The step is completed; and More than 8', 'size', 'events'],
      ['The step is completed; and None of the other conditions holds', 'size', 'people'],
      ['The step is completed; and At most 8; and This has been done already: The customer has named it; and There is a table', 'size', 'time', 'book'],
      ['The step is completed; and At most 8; and This has been done already: The customer has named it; and There is none', 'size', 'time', 'end'],
    ]);
  });

  it('not through a tool step, a step that the agent says, or the step itself', () => {
    expect(pathsOf(graph, 'time', () => true)).toEqual(['book', 'end']);
    expect(pathsOf(graph, 'people', (id) => id !== 'time')).toEqual(['size time', 'size events', 'size people']);
  });

  it('over 3 steps, over 4 when there is a fork among them', () => {
    const steps = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(chat);
    const line = modelOf('line', steps, [way('a', 'b'), way('b', 'c'), way('c', 'd'), way('d', 'e'), way('e', 'f'), way('f', 'g')]);
    expect(pathsOf(line.graph, 'a', () => true)).toEqual(['b', 'b c', 'b c d']);
    const forked = modelOf(
      'forked',
      [...steps, fork('x')],
      [way('a', 'x'), way('x', 'b', '1'), way('x', 'g', '2'), way('b', 'c'), way('c', 'd'), way('d', 'e'), way('e', 'f')],
    );
    expect(pathsOf(forked.graph, 'a', () => true)).toEqual(['x b', 'x g', 'x b c', 'x b c d', 'x b c d e']);
  });

  it('is that of the evaluation, unless the graph has no such way', () => {
    const evaluated = (path: string[]) => ({ nodes: { people: { ...evaluationWith(true), follow_ups: [{ condition: 'Few', path }] } } });
    expect(followUpsOf(graph, 'people', evaluated(['size', 'time']))).toEqual([{ condition: 'Few', path: ['size', 'time'] }]);
    for (const path of [['time'], ['size'], ['size', 'book'], ['unknown']]) expect(followUpsOf(graph, 'people', evaluated(path))).toHaveLength(3);
  });
});
