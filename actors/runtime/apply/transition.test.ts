import { describe, expect, it } from 'vitest';
import * as xstate from 'xstate';
import { turnMachine } from '../../kinds/turn/machine.ts';
import type { TurnEvent } from '../../kinds/turn/types.ts';
import { initialTransition, transition } from './transition.ts';

const input = { turnId: 'trn_1', atMs: 1_000, timeoutMs: 180_000 };
const joined: TurnEvent = { type: 'message.joined', atMs: 2_000 };
const message = { type: 'message' as const, text: 'Two years.', model: 'm', provider: 'p' };
const reply: TurnEvent = { type: 'call.replied', atMs: 3_000, callId: 'trn_1-2', reply: message };

/** What a transition stores and executes. */
function seen([next, actions]: [{ value: unknown; context: unknown; status: string }, readonly { type: string; params?: unknown }[]]) {
  const { value, context, status } = next;
  return { value, context, status, actions: actions.map(({ type, params }) => ({ type, params })) };
}

describe('a step of a machine', () => {
  it('throws what a guard or an assignment throws, and names no action then', () => {
    const broken = xstate.setup({ types: { context: {} as { seen: string } } }).createMachine({
      context: { seen: '' },
      on: { changed: { actions: xstate.assign({ seen: () => expect.unreachable('as it would of a fault of ours') }) } },
    });

    expect(() => transition(broken, broken.resolveState({ value: {}, context: { seen: '' } }), { type: 'changed' })).toThrow('a fault of ours');
  });

  it("has the result of XState's own pure functions", () => {
    const begun = initialTransition(turnMachine, input);
    const theirs = xstate.initialTransition(turnMachine, input);
    expect(seen(begun)).toEqual(seen(theirs));

    const asked = transition(turnMachine, begun[0], joined);
    expect(seen(asked)).toEqual(seen(xstate.transition(turnMachine, theirs[0], joined)));
    expect(seen(transition(turnMachine, asked[0], reply))).toEqual(seen(xstate.transition(turnMachine, asked[0], reply)));
    expect(seen(asked).actions).not.toEqual([]);
  });

  it('leaves its snapshot unchanged, so that the same step can be repeated', () => {
    const [begun] = initialTransition(turnMachine, input);
    const before = structuredClone({ value: begun.value, context: begun.context });

    expect(seen(transition(turnMachine, begun, joined))).toEqual(seen(transition(turnMachine, begun, joined)));
    expect({ value: begun.value, context: begun.context }).toEqual(before);
  });
});
