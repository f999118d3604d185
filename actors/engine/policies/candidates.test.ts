import { describe, expect, it } from 'vitest';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { type Candidate, conditionIn, firstCandidates, laterCandidates, likeliestRoutine, type MatchDocuments, repeatedCandidates } from './candidates.ts';
import { testPolicy } from './test-support/test-policy.ts';
import { autonomousRoutine, testRoutine } from './test-support/test-routine.ts';

/** `of-gone` and `of-run` are in scope in no conversation. */
const documents: MatchDocuments = {
  policies: [
    testPolicy('free'),
    testPolicy('of-refund'),
    testPolicy('of-gone'),
    testPolicy('late', { routines: ['repair'] }),
    testPolicy('shared', { routines: ['refund', 'repair'] }),
    testPolicy('off', { enabled: false }),
    testPolicy('of-run', { routines: ['report'] }),
  ],
  routines: [
    testRoutine('refund', { title: 'Money back', conditions: ['a refund is wanted', 'money is wanted'], policies: ['of-refund'] }),
    testRoutine('repair', { title: 'Mend a machine' }),
    testRoutine('gone', { enabled: false, policies: ['of-gone'] }),
    autonomousRoutine('report', { conditions: ['a report is wanted'] }),
  ],
};

describe('rule 12: the candidates of pass one', () => {
  it('are each policy that belongs to no routine, and the conditions of all routines', () => {
    expect(first({}, 'hello')).toEqual(['free', 'routine:refund:0', 'routine:refund:1', 'routine:repair:0']);
  });

  it('and the policies of the routine that the last messages are most like', () => {
    expect(first({}, 'my machine leaks')).toEqual(['free', 'late', 'shared', 'routine:refund:0', 'routine:refund:1', 'routine:repair:0']);
    expect(first({}, 'I want my money')).toEqual(['free', 'of-refund', 'shared', 'routine:refund:0', 'routine:refund:1', 'routine:repair:0']);
  });

  it('but of the routines with a path alone, where there is one', () => {
    expect(first({ refund: ['one'] }, 'my machine leaks')).toEqual(['free', 'of-refund', 'shared', 'routine:repair:0']);
    expect(first({ refund: ['one'], repair: ['one'] }, '')).toEqual(['free', 'of-refund', 'late', 'shared']);
  });

  it('a routine that was left has its policies and its conditions judged', () => {
    expect(first({ refund: ['one', null] }, 'my machine leaks')).toEqual([
      'free',
      'of-refund',
      'shared',
      'routine:refund:0',
      'routine:refund:1',
      'routine:repair:0',
    ]);
  });

  it('a routine that was only considered counts as one without a path', () => {
    expect(first({ refund: [null] }, 'my machine leaks')).toContain('late');
  });

  it('a routine that is disabled or runs by itself is not the likeliest', () => {
    expect(likeliestRoutine(documents, [said('a report is wanted')])).not.toBe('report');
    expect(likeliestRoutine(documents, [said('gone')])).toBeNull();
  });

  it('the conditions are observations', () => {
    expect(firstCandidates(documents, {}, null).find(({ id }) => id === 'routine:refund:1')).toMatchObject({ condition: 'money is wanted', action: null });
  });

  it('a flagged message and old ones select no routine', () => {
    const flagged = { ...said('my machine leaks'), metadata: { moderation: { flagged: true, tags: [] } } };
    const old = [said('my machine leaks'), ...Array.from({ length: 10 }, () => said('hello'))];

    expect(likeliestRoutine(documents, [said('my machine leaks')])).toBe('repair');
    expect(likeliestRoutine(documents, [flagged])).toBeNull();
    expect(likeliestRoutine(documents, old)).toBeNull();
  });
});

describe('rule 13: the candidates of later passes', () => {
  it('are the policies of active routines that were not judged', () => {
    expect(ids(laterCandidates(documents, new Set(['repair']), new Set(['free', 'shared'])))).toEqual(['late']);
    expect(ids(laterCandidates(documents, new Set(['repair', 'refund']), new Set()))).toEqual(['of-refund', 'late', 'shared']);
    expect(ids(laterCandidates(documents, new Set(), new Set()))).toEqual([]);
  });

  it('after a tool that forces a pass: everything in scope that does not apply yet', () => {
    expect(ids(repeatedCandidates(documents, new Set(['repair']), new Set(['late'])))).toEqual(['free', 'shared', 'routine:refund:0', 'routine:refund:1']);
    expect(ids(repeatedCandidates(documents, new Set(), new Set(['free'])))).toEqual(['routine:refund:0', 'routine:refund:1', 'routine:repair:0']);
  });
});

it('distinguishes conditions of routines from policies', () => {
  expect(conditionIn('routine:refund:1')).toEqual({ routineId: 'refund', index: 1 });
  expect(conditionIn('routine')).toBeNull();
});

function first(paths: Record<string, (string | null)[]>, text: string): string[] {
  return ids(firstCandidates(documents, paths, likeliestRoutine(documents, [said(text)])));
}

function ids(candidates: readonly Candidate[]): string[] {
  return candidates.map(({ id }) => id);
}

function said(text: string): ConversationEvent {
  return {
    id: 'evt_1',
    offset: 0,
    created_at: '2026-01-01T00:00:00.000Z',
    source: 'customer',
    trace_id: 'f'.repeat(32),
    metadata: {},
    kind: 'user_message',
    text,
  };
}
