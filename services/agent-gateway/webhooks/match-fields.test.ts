import { describe, expect, it } from 'vitest';
import { type MatchRules, matchesFields } from './match-fields.ts';

const BODY = {
  action: 'opened',
  number: 7,
  draft: false,
  milestone: null,
  pull_request: { base: { ref: 'main' }, labels: [{ name: 'bug' }, { name: 'urgent' }] },
  'a.b': 1,
};

describe('the match of a delivery', () => {
  it.each<[MatchRules]>([
    [{}],
    [{ action: 'opened' }],
    [{ action: ['closed', 'opened'] }],
    [{ number: 7, draft: false, milestone: null }],
    [{ 'pull_request.base.ref': 'main' }],
    [{ 'pull_request.labels.1.name': 'urgent' }],
  ])('is given by %j', (rules) => {
    expect(matchesFields(rules, BODY)).toBe(true);
  });

  it.each<[MatchRules]>([
    [{ action: 'closed' }],
    [{ action: ['closed', 'edited'] }],
    [{ action: [] }],
    [{ action: 'opened', number: 8 }],
    [{ number: '7' }],
    [{ draft: null }],
    [{ assignee: null }],
    [{ 'milestone.title': null }],
    [{ pull_request: 'main' }],
    [{ 'pull_request.labels.length': 2 }],
    [{ 'pull_request.labels.2.name': 'bug' }],
    [{ 'action.length': 6 }],
    [{ 'action.0': 'o' }],
    [{ constructor: [] }],
    [{ '__proto__.toString': [] }],
    [{ '': 'opened' }],
  ])('is not given by %j', (rules) => {
    expect(matchesFields(rules, BODY)).toBe(false);
  });
});
