import type { Action, AnyEventObject, EventObject, MachineContext, ParameterizedObject } from 'xstate';
import { effectIdOf } from './effect-ids.ts';
import { machineActions } from './machine-actions.ts';
import type { Applied, AskContext, AskFailure, AskReply, CallFailed, LoopReply, Replied } from './types.ts';

/** An action of the user's machine. */
export type UserAction<Context extends MachineContext, Seen extends EventObject, Event extends EventObject, Named extends ParameterizedObject> = Action<
  Context,
  Seen,
  Event,
  undefined,
  never,
  Named,
  never,
  never,
  EventObject
>;

/** An event of the user that ends its waiting, whatever it awaits. */
export interface Interruption<Context extends MachineContext, Event extends EventObject, Named extends ParameterizedObject> {
  on: Event['type'];
  guard?: (args: { context: Context; event: Event }) => boolean;
  target: string;
  /** After the awaited effects are superseded. */
  actions: readonly UserAction<Context, Event, Event, Named>[];
}

type ModelChoice = 'default' | 'fallback';

/** What a machine decides that asks a model. */
export interface Asker<
  Context extends MachineContext,
  Event extends AnyEventObject,
  Reply,
  Named extends ParameterizedObject,
  Meaning extends LoopReply = AskReply,
> {
  /** The names of the user's states. */
  states: { asking: string; ended: string; failed: string };
  actorIdOf(context: Context): string;
  /** The loop's part of the context, which is stored under names of the user. */
  loopOf(context: Context): AskContext;
  keep(change: Partial<AskContext>): Partial<Context>;
  /** The models of an iteration: each is asked after an unusable reply of the one before. */
  modelsOf(context: Context): readonly ModelChoice[];
  callOf(context: Context, call: { id: string; model: ModelChoice }): Extract<Named, { type: 'effect' }>['params'];
  meaningOf(reply: Reply): Meaning;
  /** At the reply that ends the loop. */
  onEnd: readonly UserAction<Context, Applied<Replied<Reply>>, Event, Named>[];
  /** What the user keeps of a failure; its state `failed` reports it. */
  failed(context: Context, failure: AskFailure): Partial<Context>;
  interruptions: readonly Interruption<Context, Event, Named>[];
  /** Events that change what the call was made from: it is superseded, and made again. */
  joins: readonly Event['type'][];
}

/** The state that waits for a model's reply: it opens one call when it is entered, and a result of any other call changes nothing. */
export function asking<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>(
  user: Asker<Context, Event, Reply, Named>,
) {
  return askingWith<Context, Event, Reply, Named, AskReply, never>(user, []);
}

/** @param further transitions of replies that neither end the loop nor are unusable: every other meaning needs one */
export function askingWith<
  Context extends MachineContext,
  Event extends AnyEventObject,
  Reply,
  Named extends ParameterizedObject,
  Meaning extends LoopReply,
  Further,
>(user: Asker<Context, Event, Reply, Named, Meaning>, further: readonly Further[]) {
  const { states, keep, loopOf, modelsOf } = user;
  const { change } = machineActions<Context, Event>();
  const callIdOf = (context: Context) => effectIdOf(user.actorIdOf(context), loopOf(context).effectNo);
  const supersede = { type: 'supersede' as const, params: ({ context }: { context: Context }) => ({ id: callIdOf(context) }) };
  const isCurrent = ({ context, event }: { context: Context; event: { callId: string } }) => event.callId === callIdOf(context);
  const repliedWith =
    (type: LoopReply['type']) =>
    ({ context, event }: { context: Context; event: Replied<Reply> }) =>
      isCurrent({ context, event }) && user.meaningOf(event.reply).type === type;
  const again = { target: states.asking, reenter: true };

  return {
    entry: [
      change<Event>(({ context }) => keep({ effectNo: loopOf(context).effectNo + 1 })),
      {
        type: 'effect' as const,
        params: ({ context }: { context: Context }) =>
          user.callOf(context, { id: callIdOf(context), model: modelsOf(context)[loopOf(context).unusable] ?? 'default' }),
      },
    ],
    on: {
      ...interruptedBy(user.interruptions, supersede),
      ...Object.fromEntries(user.joins.map((type) => [type, { ...again, actions: supersede }])),
      'call.replied': [
        { guard: repliedWith('end'), target: states.ended, actions: user.onEnd },
        {
          guard: ({ context, event }: { context: Context; event: Replied<Reply> }) =>
            repliedWith('unusable')({ context, event }) && loopOf(context).unusable + 1 >= modelsOf(context).length,
          target: states.failed,
          actions: change<Replied<Reply>>(({ context, event }) => user.failed(context, unusableOf(user.meaningOf(event.reply)))),
        },
        {
          ...again,
          guard: repliedWith('unusable'),
          actions: change<Replied<Reply>>(({ context }) => keep({ unusable: loopOf(context).unusable + 1 })),
        },
        ...further,
      ],
      'call.failed': {
        guard: isCurrent,
        target: states.failed,
        actions: change<CallFailed>(({ context, event }) => user.failed(context, { type: 'call-failed', code: event.failure.code })),
      },
    },
  };
}

/** The user's interruptions as transitions of a waiting state. @param supersede closes the effects that the state awaits */
export function interruptedBy<Context extends MachineContext, Event extends EventObject, Named extends ParameterizedObject, Supersede>(
  interruptions: readonly Interruption<Context, Event, Named>[],
  supersede: Supersede,
) {
  return Object.fromEntries(interruptions.map(({ on, ...transition }) => [on, { ...transition, actions: [supersede, ...transition.actions] }]));
}

function unusableOf(reply: LoopReply): AskFailure {
  return { type: 'unusable', finishReason: reply.type === 'unusable' ? reply.finishReason : '' };
}
