import { describe, expect, it } from 'vitest';
import { type Case, expectedOf, resolved } from './test-support/resolve-case.ts';

const A = { a: {}, b: {}, c: {} };

const cases: Case[] = [
  {
    title: 'rule 20: without relationships everything that matched is active',
    policies: A,
    matched: 'p:a p:b',
    active: 'p:a p:b',
    because: [['p:a', 'none', null]],
  },

  {
    title: 'rule 21: a policy over a policy',
    policies: A,
    priorities: ['p:a > p:b'],
    matched: 'p:a p:b',
    active: 'p:a',
    because: [['p:b', 'deprioritized', 'priority', 'p:a']],
  },
  { title: 'rule 21: a policy that did not match displaces nothing', policies: A, priorities: ['p:a > p:b'], matched: 'p:b', active: 'p:b' },
  {
    title: 'rule 21: a policy over a routine',
    policies: A,
    routines: { r: {} },
    priorities: ['p:a > r:r'],
    matched: 'p:a r:r',
    active: 'p:a',
    because: [['r:r', 'deprioritized', 'priority', 'p:a']],
  },
  {
    title: 'rule 21: the policies of a displaced routine are inactive too',
    policies: A,
    routines: { r: { policies: ['b'] } },
    priorities: ['p:a > r:r'],
    matched: 'p:a p:b r:r',
    active: 'p:a',
    because: [['p:b', 'unmet_dependency', 'scope', 'r:r']],
  },
  {
    title: 'rule 21: a policy over all routines',
    policies: A,
    routines: { r: {}, q: {} },
    priorities: ['p:a > *'],
    matched: 'p:a p:b r:r r:q',
    active: 'p:a p:b',
  },
  {
    title: 'rule 21: over all routines leaves out the policy’s own',
    policies: { a: { routines: ['r'] } },
    routines: { r: {}, q: {} },
    priorities: ['p:a > *'],
    matched: 'p:a r:r r:q',
    active: 'p:a r:r',
  },
  {
    title: 'rule 21: a routine over a policy',
    policies: A,
    routines: { r: {} },
    priorities: ['r:r > p:b'],
    matched: 'p:a p:b r:r',
    active: 'p:a r:r',
    because: [['p:b', 'deprioritized', 'priority', 'r:r']],
  },
  {
    title: 'rule 21: a routine that is not active displaces nothing',
    policies: A,
    routines: { r: {} },
    priorities: ['r:r > p:b'],
    matched: 'p:b',
    active: 'p:b',
  },
  { title: 'rule 21: a routine over a routine', routines: { r: {}, q: {} }, priorities: ['r:r > r:q'], matched: 'r:r r:q', active: 'r:r' },
  {
    title: 'rule 21: over a tag',
    policies: { a: {}, b: { labels: ['x'] }, c: { labels: ['x'] } },
    routines: { r: { labels: ['x'] } },
    priorities: ['p:a > tag:x'],
    matched: 'p:a p:b p:c r:r',
    active: 'p:a',
  },
  {
    title: 'rule 21: a tag over one of its own',
    policies: { a: { labels: ['x'] }, b: { labels: ['x'] } },
    priorities: ['tag:x > p:b'],
    matched: 'p:a p:b',
    active: 'p:a',
  },

  { title: 'rule 22: a displaced policy displaces nothing', policies: A, priorities: ['p:a > p:b', 'p:b > p:c'], matched: 'p:a p:b p:c', active: 'p:a p:c' },
  {
    title: 'rule 21: a policy of the group that it displaces',
    policies: { a: { labels: ['x'] }, b: { labels: ['x'] } },
    priorities: ['tag:x > p:b'],
    matched: 'p:b',
    active: 'p:b',
  },
  {
    title: 'rule 22: a chain through a policy that did not match has no effect',
    policies: A,
    priorities: ['p:a > p:b', 'p:b > p:c'],
    matched: 'p:a p:c',
    active: 'p:a p:c',
  },
  {
    title: 'rule 22: a policy of a displaced routine displaces nothing',
    policies: { a: {}, b: { routines: ['r'] }, c: {} },
    routines: { r: {} },
    priorities: ['p:a > r:r', 'p:b > p:c'],
    matched: 'p:a p:b p:c r:r',
    active: 'p:a p:c',
  },
  {
    title: 'rule 22: what depends on a displaced policy displaces nothing',
    policies: { a: {}, b: {}, c: { depends_on: ['policy:b'] }, d: {} },
    priorities: ['p:a > p:b', 'p:c > p:d'],
    matched: 'p:a p:b p:c p:d',
    active: 'p:a p:d',
    because: [['p:c', 'unmet_dependency', 'dependency', 'p:b']],
  },

  {
    title: 'rule 23: a dependency that did not match',
    policies: { a: {}, b: { depends_on: ['policy:a'] } },
    matched: 'p:b',
    active: '',
    because: [['p:b', 'unmet_dependency', 'dependency', 'p:a']],
  },
  { title: 'rule 23: a dependency that matched', policies: { a: { action: null }, b: { depends_on: ['policy:a'] } }, matched: 'p:a p:b', active: 'p:a p:b' },
  {
    title: 'rule 23: all dependencies are needed',
    policies: { a: {}, b: {}, c: { depends_on: ['policy:a', 'policy:b'] } },
    matched: 'p:a p:c',
    active: 'p:a',
    because: [['p:c', 'unmet_dependency', 'dependency', 'p:b']],
  },
  {
    title: 'rule 23: of a group one is enough',
    policies: { a: { labels: ['x'] }, b: { labels: ['x'] }, c: { depends_on: ['tag:x'] } },
    matched: 'p:a p:c',
    active: 'p:a p:c',
  },
  {
    title: 'rule 23: of a group none',
    policies: { a: { labels: ['x'] }, c: { depends_on: ['tag:x'] } },
    matched: 'p:c',
    active: '',
    because: [['p:c', 'unmet_dependency', 'dependency', 'tag:x']],
  },
  {
    title: 'rule 23: a policy is not its own dependency',
    policies: { a: { labels: ['x'], depends_on: ['tag:x'] }, b: { labels: ['x'] } },
    matched: 'p:a',
    active: '',
  },
  {
    title: 'rule 23: a chain of dependencies',
    policies: { a: {}, b: { depends_on: ['policy:a'] }, c: { depends_on: ['policy:b'] } },
    matched: 'p:b p:c',
    active: '',
  },
  { title: 'rule 23: a routine as dependency', policies: { b: { depends_on: ['routine:r'] } }, routines: { r: {} }, matched: 'p:b', active: '' },
  {
    title: 'rule 23: a policy outside of its routine',
    policies: { b: { routines: ['r', 'q'] } },
    routines: { r: {}, q: {} },
    matched: 'p:b',
    active: '',
    because: [['p:b', 'unmet_dependency', 'scope', 'r:r, r:q']],
  },
  {
    title: 'rule 23: a policy in one of its routines',
    policies: { b: { routines: ['r', 'q'] } },
    routines: { r: {}, q: {} },
    matched: 'p:b r:q',
    active: 'p:b r:q',
  },
];

describe('resolution', () => {
  it.each(cases)('$title', (given) => {
    const expected = expectedOf(given);
    const { active, resolutions } = resolved(given);

    expect([...active].toSorted()).toEqual(expected.active);
    expect(resolutions).toEqual(expect.arrayContaining(expected.resolutions));
  });

  it('rule 27: what was displaced in an earlier pass of the turn stays so', () => {
    const first = resolved({ policies: A, priorities: ['p:a > p:b'], matched: 'p:a p:b' });
    const second = resolved({ policies: A, priorities: ['p:a > p:b'], entailments: ['p:c + p:b'], matched: 'p:b p:c', displaced: first.displaced });

    expect([...second.active]).toEqual(['policy:c']);
    expect(second.resolutions).toContainEqual({ entity: 'policy:b', outcome: 'deprioritized', relationship: 'priority', counterparts: ['policy:a'] });
  });

  it('rule 10: what a question stands for is not active, whatever entails it', () => {
    const { active } = resolved({ policies: A, entailments: ['p:c + p:b'], matched: 'p:a p:c', withheld: 'p:a p:b' });

    expect([...active]).toEqual(['policy:c']);
  });
});
