import { describe, expect, it } from 'vitest';
import { glossary } from '../contracts/documents/glossary.ts';
import { policy } from '../contracts/documents/policy.ts';
import { routine } from '../contracts/documents/routine.ts';
import { checkEngineLimits } from './check-engine-limits.ts';
import { checkRelationships } from './check-relationships.ts';
import { outlineOf } from './manifest-outline.ts';
import type { NamedDocuments } from './named-documents.ts';

interface Given {
  policies?: Record<string, object>;
  routines?: Record<string, object>;
  /** Terms by glossary. */
  glossaries?: Record<string, number>;
  context?: object;
  runtime?: object;
}

const A = { a: {}, b: {} };

describe('relationships that are refused', () => {
  it.each<[string, Given, string[]]>([
    [
      'an unknown policy above',
      { policies: A, context: relationships([['policy:x', 'policy:a']]) },
      ['context.relationships.priorities.0.higher: the manifest names no "policy:x"'],
    ],
    [
      'an unknown policy below',
      { policies: A, context: relationships([['policy:a', 'policy:x']]) },
      ['context.relationships.priorities.0.over: the manifest names no "policy:x"'],
    ],
    [
      'an unknown routine',
      { policies: A, context: relationships([['policy:a', 'routine:x']]) },
      ['context.relationships.priorities.0.over: the manifest names no "routine:x"'],
    ],
    [
      'an unknown policy that entails',
      { policies: A, context: relationships([], [['policy:x', 'policy:a']]) },
      ['context.relationships.entailments.0.when: the manifest names no "policy:x"'],
    ],
    [
      'an unknown policy that is entailed',
      { policies: A, context: relationships([], [['policy:a', 'policy:x']]) },
      ['context.relationships.entailments.0.also_apply.0: the manifest names no "policy:x"'],
    ],
    ['an unknown dependency', { policies: { a: { depends_on: ['routine:x'] } } }, ['a depends_on.0: the manifest names no "routine:x"']],
    ['an unknown option', { policies: { a: { disambiguates: ['policy:a', 'policy:x'] } } }, ['a disambiguates.1: the manifest names no "policy:x"']],
    [
      'a cycle of two priorities',
      {
        policies: A,
        context: relationships([
          ['policy:a', 'policy:b'],
          ['policy:b', 'policy:a'],
        ]),
      },
      ['context.relationships.priorities: form a cycle: policy:a over policy:b over policy:a'],
    ],
    [
      'an entailment of what is displaced',
      { policies: A, context: relationships([['policy:a', 'policy:b']], [['policy:a', 'policy:b']]) },
      ['context.relationships.entailments.0.also_apply.0: contradicts priorities, where "policy:a" displaces "policy:b"'],
    ],
    [
      'an entailment of what displaces',
      { policies: A, context: relationships([['policy:b', 'policy:a']], [['policy:a', 'policy:b']]) },
      ['context.relationships.entailments.0.also_apply.0: contradicts priorities, where "policy:b" displaces "policy:a"'],
    ],
    [
      'a policy over the routine that it names',
      { policies: { a: { routines: ['r'] } }, routines: { r: {} }, context: relationships([['policy:a', 'routine:r']]) },
      ['context.relationships.priorities.0: puts "policy:a" above "routine:r", to which it belongs'],
    ],
    [
      'a policy over the routine that names it',
      { policies: A, routines: { r: { policies: ['a'] } }, context: relationships([['policy:a', 'routine:r']]) },
      ['context.relationships.priorities.0: puts "policy:a" above "routine:r", to which it belongs'],
    ],
  ])('%s', (_, given, expected) => {
    expect(problemsOf(given)).toEqual(expected);
  });
});

it('a policy of a routine over all routines means the others, so that its routine may be above it', () => {
  const priorities = [
    { higher: 'policy:a', over_all_routines: true },
    { higher: 'routine:r', over: 'policy:a' },
  ];

  expect(problemsOf({ policies: { a: { routines: ['r'] } }, routines: { r: {}, q: {} }, context: { relationships: { priorities, entailments: [] } } })).toEqual(
    [],
  );
});

const TOO_MANY_CALLS =
  'context.policies: may take 129 model calls to judge once, with conditions of routines, and at most 128 are made: name fewer policies, or raise runtime.policy_batch_size';

describe('sizes that are refused', () => {
  it.each<[string, Given, string[]]>([
    ['501 policies', { policies: many(501) }, ['context.policies: must not be more than 500: there are 501']],
    ['101 policies a call', { runtime: { policy_batch_size: 101 } }, ['runtime.policy_batch_size: must not be more than 100']],
    ['a long condition', { policies: { a: { condition: 'x'.repeat(2_001) } } }, ['a condition: must not be longer than 2000 characters']],
    ['a long action', { policies: { a: { action: 'x'.repeat(8_001) } } }, ['a action: must not be longer than 8000 characters']],
    ['21 options', { policies: { a: { disambiguates: Array(21).fill('policy:a') } } }, ['a disambiguates: must not be longer than 20 references']],
    ['more calls than a turn can make', { policies: many(126), runtime: { policy_batch_size: 1 } }, [TOO_MANY_CALLS]],
    [
      'no calls beyond that, with conditions of routines',
      { policies: many(20), routines: { r: { conditions: Array(50).fill('c') }, q: { conditions: Array(50).fill('c') } }, runtime: { policy_batch_size: 1 } },
      [],
    ],
    [
      'too many policies that are asked about one by one',
      {
        policies: Object.fromEntries(Object.keys(many(129)).map((id) => [id, { disambiguates: ['policy:p1', 'policy:p2'] }])),
        runtime: { policy_batch_size: 100 },
      },
      [TOO_MANY_CALLS],
    ],
    ['2001 terms', { glossaries: { one: 2_000, two: 1 } }, ['context.glossaries: must not have more than 2000 terms: one, two have 2001']],
  ])('%s', (_, given, expected) => {
    expect(problemsOf(given)).toEqual(expected);
  });

  it('the largest are accepted', () => {
    const largest = { condition: 'x'.repeat(2_000), action: 'x'.repeat(8_000), disambiguates: Array(20).fill('policy:a') };

    expect(problemsOf({ policies: { ...many(499), a: largest }, glossaries: { one: 2_000 }, runtime: { policy_batch_size: 100 } })).toEqual([]);
  });
});

function problemsOf({ policies = {}, routines = {}, glossaries = {}, context = {}, runtime = {} }: Given): string[] {
  const versions = (ids: string[]) => ids.map((id) => ({ id, version: 1 }));
  const named = { policies: versions(Object.keys(policies)), routines: versions(Object.keys(routines)) };
  const outline = outlineOf({ agent_config: { context: { ...named, ...context }, runtime } });
  if (outline === null) throw new TypeError('no context');
  const documents: NamedDocuments = {
    prompts: [],
    macros: [],
    variable_sets: [],
    policies: Object.entries(policies).map(([id, fields]) => ({ file: id, document: policy.parse({ id, version: 1, condition: 'c', ...fields }) })),
    routines: Object.entries(routines).map(([id, fields]) => {
      const steps = [{ id: 'one', kind: 'chat', chat_state: 'go' }];
      return { file: id, document: routine.parse({ id, version: 1, conditions: ['c'], steps, ...fields }) };
    }),
    glossaries: Object.entries(glossaries).map(([id, count]) => {
      const terms = Array.from({ length: count }, (_, index) => ({ name: `${id}-${index}`, description: 'd' }));
      return { file: id, document: glossary.parse({ id, version: 1, terms }) };
    }),
  };
  const problems: string[] = [];
  const report = (file: string, path: readonly PropertyKey[], message: string) => {
    problems.push(`${file === 'manifest' ? path.slice(1).join('.') : `${file} ${path.join('.')}`}: ${message}`);
  };
  checkRelationships(outline, documents, 'manifest', report);
  checkEngineLimits(outline, documents, 'manifest', report);
  return problems;
}

/** Pairs of what is above and below, and of what entails and is entailed. */
function relationships(priorities: [string, string][], entailments: [string, string][] = []): object {
  return {
    relationships: {
      priorities: priorities.map(([higher, over]) => ({ higher, over })),
      entailments: entailments.map(([when, implied]) => ({ when, also_apply: [implied] })),
    },
  };
}

function many(count: number): Record<string, object> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, {}]));
}
