import { setFlagsFromString } from 'node:v8';
import { expect, it, vi } from 'vitest';
import { turnApplied } from '../../effects/turn-applied.ts';
import { turnCall } from '../../effects/turn-call.ts';
import { turnStep } from '../../effects/turn-step.ts';
import { testPolicy } from '../../engine/policies/test-support/test-policy.ts';
import { EngineSession } from '../../test-support/engine-session.ts';
import { testEngineDocuments } from '../../test-support/test-engine-documents.ts';
import { turnKind } from './kind.ts';
import { turnMachine } from './machine.ts';

/** As many as V8 takes until it knows what fields hold. */
const TURNS = 50;
const IDS = ['leak', 'refund', 'greet'];

setFlagsFromString('--allow-natives-syntax');
const haveSameMap = new Function('one', 'other', 'return %HaveSameMap(one, other)') as (one: object, other: object) => boolean;

it('objects that a turn makes for each call share a hidden class: one of its own would stay in the old generation, and make all code about it slow', () => {
  const made = new Map<string, object[]>();
  const note = <Made extends object>(what: string, object: Made): Made => {
    made.set(what, [...(made.get(what) ?? []), object]);
    return object;
  };
  for (const kind of [turnStep, turnCall, turnApplied]) {
    const inputsOf = kind.inputsOf.bind(kind) as (...parameters: unknown[]) => object;
    vi.spyOn(kind as { inputsOf: typeof inputsOf }, 'inputsOf').mockImplementation((...parameters) => note(`inputs of ${kind.name}`, inputsOf(...parameters)));
  }
  const transition = turnMachine.transition.bind(turnMachine);
  vi.spyOn(turnMachine, 'transition').mockImplementation((state, event, scope) => transition(state, note(`event ${event.type}`, event), scope));
  const { afterTransition } = turnKind;
  vi.spyOn(turnKind as Required<typeof turnKind>, 'afterTransition').mockImplementation((plan, what) => {
    afterTransition?.(plan, { ...what, state: note(what.before === null ? 'first state' : 'state', what.state) });
  });

  const documents = testEngineDocuments({ policies: IDS.map((id) => testPolicy(id, { track: true })), batchSize: 2 });
  for (let turn = 0; turn < TURNS; turn += 1) {
    const session = new EngineSession(documents);
    session.pause(turn);
    session.say('It leaks');
    for (const callId of [...session.open.keys()]) session.judge(callId, ['leak']);
    session.finish();
    for (const callId of [...session.open.keys()]) session.judgeApplied(callId, []);
  }

  const alike = [...made].map(([what, all]) => [what, haveSameMap(all.at(-1) ?? {}, all.at(-2) ?? {})]);
  expect(Object.fromEntries(alike)).toEqual({
    'inputs of turn-step': true,
    'inputs of router-call': true,
    'inputs of turn-applied': true,
    'event step.settled': true,
    'event call.replied': true,
    'first state': true,
    state: true,
  });
});
