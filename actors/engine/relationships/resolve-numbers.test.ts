import { expect, it } from 'vitest';
import { type Case, expectedOf, resolved } from './test-support/resolve-case.ts';

const A = { a: {}, b: {}, c: {} };

const cases: Case[] = [
  {
    title: 'rule 24: the highest number silences all others',
    policies: { a: { priority: 1 }, b: {}, c: { priority: 1 } },
    routines: { r: {} },
    matched: 'p:a p:b p:c r:r',
    active: 'p:a p:c',
    because: [
      ['p:b', 'deprioritized', 'numeric_priority', 'p:a', 'p:c'],
      ['r:r', 'deprioritized', 'numeric_priority', 'p:a', 'p:c'],
    ],
  },
  { title: 'rule 24: the number of what did not match does not count', policies: { a: { priority: 9 }, b: {} }, matched: 'p:b', active: 'p:b' },
  {
    title: 'rule 24: the number of what was displaced does not count',
    policies: { a: { priority: 9 }, b: {}, c: {} },
    priorities: ['p:b > p:a'],
    matched: 'p:a p:b p:c',
    active: 'p:b p:c',
  },
  { title: 'rule 24: negative numbers', policies: { a: { priority: -1 }, b: { priority: -2 } }, matched: 'p:a p:b', active: 'p:a' },
  {
    title: 'rule 24: a routine silences policies, but not its own',
    policies: { a: {}, b: {} },
    routines: { r: { priority: 1, policies: ['b'] } },
    matched: 'p:a p:b r:r',
    active: 'p:b r:r',
  },
  {
    title: 'rule 24: a policy does not silence what it needs',
    policies: { a: { priority: 1, depends_on: ['policy:b'] }, b: { action: null }, c: {} },
    matched: 'p:a p:b p:c',
    active: 'p:a p:b',
  },
  {
    title: 'rule 24: a policy does not silence its routine',
    policies: { a: { priority: 1, routines: ['r'] } },
    routines: { r: {}, q: {} },
    matched: 'p:a r:r r:q',
    active: 'p:a r:r',
  },

  {
    title: 'rule 25: an entailment adds policies whose condition does not hold',
    policies: A,
    entailments: ['p:a + p:b p:c'],
    matched: 'p:a',
    active: 'p:a p:b p:c',
    because: [['p:b', 'entailed', 'entailment', 'p:a']],
  },
  { title: 'rule 25: an entailment of a policy that did not match adds nothing', policies: A, entailments: ['p:a + p:b'], matched: 'p:c', active: 'p:c' },
  { title: 'rule 25: an entailment of a routine', policies: A, routines: { r: {} }, entailments: ['r:r + p:b'], matched: 'r:r', active: 'p:b r:r' },
  {
    title: 'rule 25: what matched by itself is recorded so',
    policies: A,
    entailments: ['p:a + p:b'],
    matched: 'p:a p:b',
    active: 'p:a p:b',
    because: [['p:b', 'none', null]],
  },
  {
    title: 'rule 25: a number silences nothing that is entailed',
    policies: { a: { priority: 1 }, b: {}, c: {} },
    entailments: ['p:a + p:b'],
    matched: 'p:a p:c',
    active: 'p:a p:b',
  },
  {
    title: 'rule 25: even if it matched by itself',
    policies: { a: { priority: 1 }, b: {}, c: {} },
    entailments: ['p:a + p:b'],
    matched: 'p:a p:b p:c',
    active: 'p:a p:b',
  },
  {
    title: 'rule 25: the number of what is entailed silences nothing',
    policies: { a: {}, b: { priority: 9 }, c: {} },
    entailments: ['p:a + p:b'],
    matched: 'p:a p:c',
    active: 'p:a p:b p:c',
  },
  {
    title: 'rule 25: what is silenced entails nothing',
    policies: { a: {}, b: {}, c: { priority: 1 } },
    entailments: ['p:a + p:b'],
    matched: 'p:a p:c',
    active: 'p:c',
  },
  {
    title: 'rule 25: a chain of entailments',
    policies: { a: {}, b: {}, c: {}, d: {}, e: {} },
    entailments: ['p:a + p:b', 'p:b + p:c', 'p:c + p:d', 'p:d + p:e'],
    matched: 'p:a',
    active: 'p:a p:b p:c p:d p:e',
  },
  {
    title: 'rule 25: two that entail each other are not active by that',
    policies: { a: {}, b: {}, c: {}, x: {} },
    priorities: ['p:x > p:c'],
    entailments: ['p:c + p:a', 'p:a + p:b', 'p:b + p:a'],
    matched: 'p:c p:x',
    active: 'p:x',
  },

  {
    title: 'rule 26: an entailment brings back what lacked it',
    policies: { a: {}, b: {}, c: { depends_on: ['policy:b'] } },
    entailments: ['p:a + p:b'],
    matched: 'p:a p:c',
    active: 'p:a p:b p:c',
    because: [['p:c', 'none', null]],
  },
  {
    title: 'rule 26: an entailed policy displaces',
    policies: A,
    priorities: ['p:b > p:c'],
    entailments: ['p:a + p:b'],
    matched: 'p:a p:c',
    active: 'p:a p:b',
    because: [['p:c', 'deprioritized', 'priority', 'p:b']],
  },
  {
    title: 'rule 26: an entailed policy that is displaced stays so',
    policies: A,
    priorities: ['p:c > p:b'],
    entailments: ['p:a + p:b'],
    matched: 'p:a p:c',
    active: 'p:a p:c',
    because: [['p:b', 'deprioritized', 'priority', 'p:c']],
  },
  {
    title: 'rule 26: an entailed policy whose dependency is missing',
    policies: { a: {}, b: { depends_on: ['policy:c'] }, c: {} },
    entailments: ['p:a + p:b'],
    matched: 'p:a',
    active: 'p:a',
    because: [['p:b', 'unmet_dependency', 'dependency', 'p:c']],
  },
  {
    title: 'rule 26: a displaced policy does not come back when what displaced it goes',
    policies: { a: { depends_on: ['policy:d'] }, b: {}, c: {}, d: {}, e: {} },
    priorities: ['p:a > p:b', 'p:e > p:d'],
    entailments: ['p:c + p:e'],
    matched: 'p:a p:b p:c p:d',
    active: 'p:c p:e',
  },

  {
    title: 'disabled policies have no part',
    policies: { a: { enabled: false }, b: {} },
    priorities: ['p:a > p:b'],
    entailments: ['p:b + p:a'],
    matched: 'p:a p:b',
    active: 'p:b',
  },
  {
    title: 'rule 26: what is entailed no longer displaces nothing',
    policies: { a: {}, b: {}, c: {}, d: {}, x: {} },
    priorities: ['p:x > p:a', 'p:b > p:c'],
    entailments: ['p:a + p:b', 'p:d + p:x'],
    matched: 'p:a p:c p:d',
    active: 'p:c p:d p:x',
  },
  {
    title: 'rule 26: what is entailed and lacks something displaces nothing',
    policies: { a: {}, b: { depends_on: ['policy:c'] }, c: {} },
    priorities: ['p:b > p:a'],
    entailments: ['p:a + p:b'],
    matched: 'p:a',
    active: 'p:a',
  },
  {
    title: 'rule 20: what is displaced in the last round is nothing that another can need',
    policies: { a: { depends_on: ['routine:r'] }, c: {}, f: {}, h: {} },
    routines: { r: {} },
    priorities: ['p:f > *'],
    entailments: ['p:a + p:f', 'p:c + p:h', 'p:h + r:r'],
    matched: 'p:a p:c',
    active: 'p:c p:h',
  },
];

it.each(cases)('$title', (given) => {
  const expected = expectedOf(given);
  const { active, resolutions } = resolved(given);

  expect([...active].toSorted()).toEqual(expected.active);
  expect(resolutions).toEqual(expect.arrayContaining(expected.resolutions));
});
