import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf, SessionCommand } from '#bus/messages/session.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { noMetrics } from '#shared/telemetry/metrics.ts';
import { contextBelow } from '#shared/telemetry/trace-context.ts';
import type { ActorInputs } from '../../inputs/actor-inputs.ts';
import { turnActor } from '../../kinds/turn/actor.ts';
import type { PartitionClaim } from '../../store/port/partition-store.ts';
import { applyTo } from '../../test-support/apply.ts';
import { CommitPlan } from './commit-plan.ts';
import type { EndedWork } from './commit-rows.ts';
import { reportCommit } from './report-commit.ts';
import { type SessionState, stateIn } from './session-state.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;
const START_MS = 1_000_000;
const header = { v: 1 as const, sessionId: 'ses_1', sentAtMs: 0, answerTo: null, traceparent: PARENT };
const create: CommandOf<'session.create'> = {
  ...{ ...header, type: 'session.create', commandId: 'cmd-1', customerId: 'cus_1', agentId: 'a', title: null, mode: 'auto' },
  ...{ metadata: {}, labels: [], allowGreeting: false, bundleHash: 'bundle' },
};
const post: CommandOf<'message.post'> = {
  ...{ ...header, type: 'message.post', commandId: 'cmd-2', source: 'customer', text: 'Hello', metadata: {}, triggersTurn: true },
  ...{ traceId: TRACE, bundleHash: 'bundle' },
};
const reply: CommandOf<'call.completed'> = {
  ...{ ...header, traceparent: null, type: 'call.completed', commandId: 'trn_new-1', ...actorFields('trn_new'), callId: 'trn_new-1', text: 'Hi', model: 'm' },
  ...{ provider: 'p', toolCalls: [], finishReason: 'stop', usage: null },
};

function transitionInputsAt(atMs: number): ActorInputs {
  const nothing = {
    greetingOf: () => null,
    runOf: () => null,
    isSettled: () => false,
    isSuperseded: () => false,
    isClaimed: () => false,
    toolsOf: () => null,
    stagedOf: () => new Map(),
  };
  return { ...nothing, atMs, coalesceMs: 0, turnTimeoutMs: 180_000, newId: () => 'new', newTraceId: () => TRACE, chance: () => 0.5 };
}

/** Applies commands one second apart, each in its own commit. */
function applyAll(commands: readonly SessionCommand[], change: (state: SessionState) => SessionState = (state) => state): CommitPlan[] {
  let state: SessionState | null = null;
  return commands.map((command, index) => {
    const plan = new CommitPlan();
    applyTo(plan, state, command, transitionInputsAt(START_MS + index * 1_000));
    state = change(plan.sessions.get('ses_1') as SessionState);
    return plan;
  });
}

describe('a turn in a trace', () => {
  it('requests everything below a derived trace context', () => {
    const [, began] = applyAll([create, post]);
    const [effect] = began?.effects.values() ?? [];
    expect(effect?.inputs.traceparent).toBe(contextBelow(PARENT, 'trn_new'));
  });

  it('is reported by the commit that ends it', () => {
    const ended = applyAll([create, post, reply]).map((plan) => plan.after.ended);
    const expected = { partition: 1, kind: 'turn', id: 'trn_new', sessionId: 'ses_1', routineId: null, bundleHash: 'bundle', parent: PARENT };
    expect(ended).toEqual([
      [],
      [],
      [{ ...expected, startedAtMs: START_MS + 1_000, endedAtMs: START_MS + 2_000, outcome: 'completed', details: expect.any(Function) }],
    ]);
    expect(ended[2]?.[0]?.details?.('off')).toEqual({ attributes: {}, events: [{ name: 'ttfm', atMs: START_MS + 2_000 }] });
  });

  it('that an older release began is reported from its end', () => {
    const withoutStart = (state: SessionState): SessionState => {
      const begun = stateIn(state, turnActor);
      if (begun === null) return state;
      const { startedAtMs: _, ...turn } = begun;
      return { ...state, actors: { ...state.actors, turn } };
    };
    const [, , plan] = applyAll([create, post, reply], withoutStart);
    expect(plan?.after.ended).toMatchObject([{ startedAtMs: START_MS + 2_000, endedAtMs: START_MS + 2_000 }]);
  });
});

it('ended work is reported only for partitions that were committed', () => {
  const [, , plan] = applyAll([create, post, reply]);
  const reported: [string, number | undefined][] = [];
  const watchers = { log: silentLog, metrics: noMetrics, onEnded: ({ id }: EndedWork, epoch: number | undefined) => void reported.push([id, epoch]) };
  if (plan === undefined) throw new Error('three commands make three plans');
  plan.touch({ partition: 1, epoch: 9, commitNo: 1, cursor: 0, cursorFingerprint: null, owner: 'host' } as PartitionClaim);
  reportCommit(plan, new Set([2]), watchers);
  expect(reported).toEqual([]);
  reportCommit(plan, new Set([1]), watchers);
  expect(reported).toEqual([['trn_new', 9]]);
});
