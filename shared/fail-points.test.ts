import { describe, expect, it } from 'vitest';
import { checkFailPoint, failPoint, failPoints } from './fail-points.ts';

describe('FAIL_POINT', () => {
  it.each([
    ['an unknown point', 'commit.never:kill'],
    ['an unknown action', 'commit.stored:crash'],
    ['a point without an action', 'commit.stored'],
    ['what every object has', 'constructor:kill'],
    ['a hit that never comes', 'commit.stored:kill:0'],
    ['anything behind the hit', 'commit.stored:kill:1:2'],
  ])('is refused with %s', (_, text) => {
    expect(() => checkFailPoint({ FAIL_POINT: text })).toThrow(/^FAIL_POINT must be <name>:<kill\|stop>\[:<hit>\]/);
  });

  it('is refused in production, whatever it names', () => {
    expect(() => checkFailPoint({ NODE_ENV: 'production', FAIL_POINT: 'commit.stored:kill' })).toThrow('FAIL_POINT is for tests and is refused in production');
  });

  it.each([
    ['not set', {}],
    ['empty', { NODE_ENV: 'production', FAIL_POINT: '' }],
    ['a point with an action', { FAIL_POINT: 'commit.stored:stop' }],
    ['the time at which it is reached', { NODE_ENV: 'test', FAIL_POINT: 'commit.stored:kill:12' }],
  ])('is taken when it is %s', (_, environment) => {
    expect(() => checkFailPoint(environment)).not.toThrow();
  });

  it('may name every point', () => {
    for (const name of Object.keys(failPoints)) expect(() => checkFailPoint({ FAIL_POINT: `${name}:kill` }), name).not.toThrow();
  });
});

it('a point that is not armed is passed', () => {
  expect(failPoint('commit.sending')).toBeUndefined();
});
