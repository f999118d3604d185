import { describe, expect, it } from 'vitest';
import { actorFields } from '#bus/messages/actor-fields.ts';
import type { CommandOf } from '#bus/messages/session.ts';
import type { ActorInputs } from '../../inputs/actor-inputs.ts';
import { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import { applyTo } from '../../test-support/apply.ts';

const ID = 'run_1-callback';
const header = { v: 1 as const, sessionId: 'ses_1', sentAtMs: 0, answerTo: null, traceparent: null };
const report = (callId: string, outcome: 'delivered' | 'failed' | 'exhausted'): CommandOf<'delivery.reported'> => ({
  ...{ ...header, type: 'delivery.reported', commandId: callId, callId, deliveryId: ID, attempts: 1, outcome, reason: null, retryAfterMs: null },
});
/** As the releases before have stored them with their timers. */
const due: CommandOf<'delivery.due'> = { ...header, type: 'delivery.due', commandId: 'r1-due', deliveryId: ID };
const overdue = (callId: string): CommandOf<'effect.overdue'> => ({
  ...{ ...header, type: 'effect.overdue', commandId: `${callId}-overdue`, callId, ...actorFields(ID), kind: 'delivery' },
});

/** The rows of commands of one batch, of a delivery of which no snapshot says anything. */
function rowsOf(commands: readonly CommandOf<'delivery.reported' | 'delivery.due' | 'effect.overdue'>[], superseded: readonly string[] = []) {
  let ids = 0;
  const newId = () => {
    ids += 1;
    return `new${ids}`;
  };
  const inputs: ActorInputs = {
    ...{ atMs: 0, coalesceMs: 0, turnTimeoutMs: 1, greetingOf: () => null, runOf: () => null, isSettled: () => false, toolsOf: () => null },
    ...{
      isClaimed: () => false,
      isSuperseded: (id: string) => superseded.includes(id),
      stagedOf: () => new Map(),
      newId,
      newTraceId: newId,
      chance: () => 0.5,
    },
  };
  const plan = new CommitPlan();
  for (const command of commands) applyTo(plan, null, command, inputs);
  return {
    opened: [...plan.effects.values()].map(({ id, state }) => `${id} ${state}`),
    closed: [...plan.effectStates.values()].map(({ id, state }) => `${id} ${state}`),
    retries: [...plan.timers.values()].flatMap(({ key, dueAtMs }) => (key.endsWith('-due') && dueAtMs !== null ? [key] : [])),
    ends: [...plan.deliveryStates.values()].map(({ state }) => state),
    deadLetters: plan.deadLetters.length,
  };
}

const nothing = { opened: [], closed: [], retries: [], ends: [], deadLetters: 0 };
const next = `${ID}-new1`;

describe('a delivery that an earlier commit, or release, has opened', () => {
  it('goes on with its next round when its retry is due', () => {
    expect(rowsOf([due])).toEqual({ ...nothing, opened: [`${next} open`] });
  });

  it('goes on with another round when one is overdue', () => {
    expect(rowsOf([overdue('r1')])).toEqual({ ...nothing, opened: [`${next} open`], closed: ['r1 superseded'] });
  });

  it('waits for its retry after a failure, and not after that of a superseded round', () => {
    expect(rowsOf([report('r1', 'failed')])).toEqual({ ...nothing, closed: ['r1 done'], retries: ['r1-due'] });
    expect(rowsOf([report('r1', 'failed')], ['r1'])).toEqual(nothing);
  });

  it('settles by a report of the end, also of a superseded round', () => {
    expect(rowsOf([report('r1', 'delivered')], ['r1'])).toEqual({ ...nothing, closed: ['r1 done'], ends: ['delivered'] });
    expect(rowsOf([report('r1', 'exhausted')])).toEqual({ ...nothing, closed: ['r1 done'], ends: ['dead'], deadLetters: 1 });
  });

  it('settles once when two rounds report the end in one commit: the first counts', () => {
    const both = { ...nothing, closed: ['r1 done', 'r2 done'] };
    expect(rowsOf([report('r1', 'delivered'), report('r2', 'exhausted')])).toEqual({ ...both, ends: ['delivered'] });
    expect(rowsOf([report('r1', 'exhausted'), report('r2', 'exhausted')])).toEqual({ ...both, ends: ['dead'], deadLetters: 1 });
  });

  it('has one chain of rounds though a report and its timer come in one commit', () => {
    expect(rowsOf([report('r1', 'failed'), overdue('r1')])).toEqual({ ...nothing, closed: ['r1 done'], retries: ['r1-due'] });
    expect(rowsOf([overdue('r1'), report('r1', 'failed')])).toEqual({ ...nothing, opened: [`${next} open`], closed: ['r1 superseded'] });
    expect(rowsOf([report('r1', 'delivered'), overdue('r1')]).opened).toEqual([]);
  });
});
