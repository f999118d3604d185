import { describe, expect, it } from 'vitest';
import { routine } from './routine.ts';
import { routineLimits } from './routine-limits.ts';

const chat = (id: string) => ({ kind: 'chat', id, chat_state: 'Say it.' });
const many = (count: number) => Array.from({ length: count }, (_, index) => chat(`s${index}`));
const problemsOf = (parts: object) =>
  routine
    .safeParse({ id: 'r', version: 1, conditions: ['c'], steps: [chat('a')], ...parts })
    .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? [];

describe('rule 48: a document with a routine that is too large is refused', () => {
  it('of 200 steps with cycles it is not', () => {
    const steps = many(routineLimits.steps);
    const transitions = steps.flatMap(({ id }, index) => [
      { from: id, to: `s${(index + 1) % steps.length}`, when: 'on' },
      { from: id, to: `s${Math.max(0, index - 7)}`, when: 'back' },
      { from: id, to: 'end', when: 'over' },
    ]);
    expect(problemsOf({ steps, transitions })).toEqual([]);
  });

  it.each([
    ['steps', { steps: many(201), transitions: many(200).map(({ id }, index) => ({ from: id, to: `s${index + 1}` })) }, 'steps: must have at most 200 entries'],
    [
      'transitions',
      { transitions: Array.from({ length: 1_001 }, (_, index) => ({ from: 'a', to: 'a', when: `c${index}` })) },
      'transitions: must have at most 1000 entries',
    ],
    ['conditions', { conditions: Array.from({ length: 51 }, () => 'c') }, 'conditions: must have at most 50 entries'],
  ])('with too many %s', (_case, parts, problem) => {
    expect(problemsOf(parts)).toContain(problem);
  });

  it('with more than 32 ways on from a step, over forks too', () => {
    const targets = many(33);
    const direct = targets.map(({ id }) => ({ from: 'a', to: id, when: `to ${id}` }));
    expect(problemsOf({ steps: [chat('a'), ...targets], transitions: direct })).toEqual([
      'steps.0: has more than 32 ways on, forks included: all are shown in one question; "a" needs fewer',
    ]);
    const forked = direct.map(({ to, when }, index) => ({ from: index < 16 ? 'f' : 'g', to, when }));
    const over = [{ from: 'a', to: 'f' }, { from: 'f', to: 'g', when: 'g' }, ...forked];
    expect(problemsOf({ steps: [chat('a'), { kind: 'fork', id: 'f' }, { kind: 'fork', id: 'g' }, ...targets], transitions: over })).toHaveLength(2);
    const fewer = [...over.slice(0, -1), { from: 's0', to: 's32' }];
    expect(problemsOf({ steps: [chat('a'), { kind: 'fork', id: 'f' }, { kind: 'fork', id: 'g' }, ...targets], transitions: fewer })).toEqual([]);
  });

  it('with forks so tangled that their ways can not be counted, in bounded time', () => {
    const forks = Array.from({ length: 60 }, (_, index) => ({ kind: 'fork', id: `f${index}` }));
    const between = forks.flatMap(({ id: from }, index) => forks.slice(index + 1, index + 14).map(({ id: to }) => ({ from, to, when: `${from} ${to}` })));
    const out = ['f58', 'f59'].flatMap((from) => ['end', 'a'].map((to) => ({ from, to, when: to })));
    const problems = problemsOf({ steps: [chat('a'), ...forks], transitions: [{ from: 'a', to: 'f0' }, ...between, ...out] });
    expect(problems.some((problem) => problem.includes('ways on'))).toBe(true);
  });
});
