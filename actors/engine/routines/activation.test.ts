import { expect, it } from 'vitest';
import { activatedRoutines, conditionPolicies } from './activation.ts';

const routines = [
  { id: 'a', conditions: ['one', 'two'] },
  { id: 'b', conditions: ['three'] },
];

it('rule 31: a routine is activated when one of its conditions, matched like observations, holds', () => {
  const policies = routines.flatMap(conditionPolicies);
  expect(policies.map(({ id, condition, action }) => [id, condition, action])).toEqual([
    ['routine:a:1', 'one', null],
    ['routine:a:2', 'two', null],
    ['routine:b:1', 'three', null],
  ]);
  expect([...activatedRoutines(routines, new Set(['routine:a:2', 'b', 'routine:b']))]).toEqual(['a']);
  expect([...activatedRoutines(routines, new Set(['routine:b:1', 'routine:a:1']))]).toEqual(['a', 'b']);
});
