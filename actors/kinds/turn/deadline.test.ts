import { describe, expect, it } from 'vitest';
import { initialTransition, transition } from 'xstate';
import { effects } from '../../effects/registry.ts';
import { decodeSnapshot, MACHINE_VERSION } from '../snapshots.ts';
import { TURN_MACHINE_VERSION, turnMachine } from './machine.ts';
import type { TurnEvent } from './types.ts';

const DEADLINE_AT_MS = 181_000;
const input = { turnId: 'trn_1', atMs: 1_000, timeoutMs: 180_000 };
const key = 'trn_1-deadline';

function timersIn(actions: readonly { type: string; params?: unknown }[]) {
  return actions.flatMap(({ type, params }) => (type === 'timer' || type === 'disarm' ? [{ type, ...(params as object) }] : []));
}

describe('the deadline of a turn', () => {
  it('that is one model call has no timer row, from its begin to its end', () => {
    const [state, begun] = initialTransition(turnMachine, input);
    const [, ended] = transition(turnMachine, state, { type: 'turn.cancel', atMs: 2_000 });

    expect(timersIn(begun)).toEqual([{ type: 'timer', key, atMs: DEADLINE_AT_MS, isDerived: true }]);
    expect(timersIn(ended)).toEqual([{ type: 'disarm', key, isDerived: true }]);
  });

  it('is stored while the turn waits for moderation, when it has no open call, and stays so', () => {
    const [state] = initialTransition(turnMachine, input);
    const [held, holding] = transition(turnMachine, state, { type: 'message.joined', held: {}, atMs: 2_000 });
    const [going, released] = transition(turnMachine, held, { type: 'messages.checked', atMs: 3_000 } as TurnEvent);
    const [, ended] = transition(turnMachine, going, { type: 'turn.cancel', atMs: 4_000 });

    expect([held.value, going.value]).toEqual(['moderating', 'composing']);
    expect([timersIn(holding), timersIn(released), timersIn(ended)]).toEqual([[{ type: 'timer', key, atMs: DEADLINE_AT_MS }], [], [{ type: 'disarm', key }]]);
  });

  it('is stored from the begin when the turn begins by waiting for moderation', () => {
    const [held, begun] = initialTransition(turnMachine, { ...input, held: {} });
    const [, ended] = transition(turnMachine, held, { type: 'turn.cancel', atMs: 2_000 });

    expect(timersIn(begun)).toEqual([{ type: 'timer', key, atMs: DEADLINE_AT_MS }]);
    expect(timersIn(ended)).toEqual([{ type: 'disarm', key }]);
  });

  it('has a row in snapshots of version 3, which the end deletes', () => {
    const turn = {
      value: 'composing',
      context: { turnId: 'trn_1', deadlineAtMs: DEADLINE_AT_MS, callNo: 1 },
      traceId: 't',
      bundleHash: 'b',
      traceparent: null,
    };
    const session = { value: 'responding', context: { mode: 'auto', queue: [], wanted: null, turnId: 'trn_1' } };
    const snapshot = { v: MACHINE_VERSION - (TURN_MACHINE_VERSION - 3) * 100, session, turn, run: null };
    const state = decodeSnapshot({ id: 'ses_1', partition: 1, snapshot })['turn'];
    const [, ended] = transition(turnMachine, turnMachine.resolveState(state as never), { type: 'turn.cancel', atMs: 2_000 });

    expect(timersIn(ended)).toEqual([{ type: 'disarm', key }]);
  });

  it('is derived from its open call by the next owner, under the key of the row', () => {
    const call = { partition: 3, id: 'trn_1-2', sessionId: 'ses_1', actorId: 'trn_1', createdAtMs: 5_000, kind: 'router-call' };
    const inputs = { template: 'compose@4', bundleHash: 'b', upToOffset: 2, deadlineAtMs: DEADLINE_AT_MS, traceparent: null };
    const [timer] = effects.timersOf({ ...call, inputs });

    expect(timer).toMatchObject({ partition: 3, key, dueAtMs: DEADLINE_AT_MS });
    expect(JSON.parse(timer?.command ?? '')).toEqual({
      ...{ v: 1, type: 'turn.deadline', sessionId: 'ses_1', commandId: key, sentAtMs: 5_000, answerTo: null, traceparent: null, turnId: 'trn_1' },
    });
    // Of the other's own result (applied-check.test.ts).
    expect(effects.kinds.flatMap(({ name, timerOf }) => (timerOf === undefined ? [] : [name])).sort()).toEqual(['router-call', 'turn-applied']);
  });
});
