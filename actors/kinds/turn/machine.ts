import { setup } from 'xstate';
import { replyEventId } from '#bus/messages/session.ts';
import { asking } from '../../tool-loop/asking.ts';
import { deadlineKeyOf } from '../../tool-loop/effect-ids.ts';
import { statusFact } from '../../tool-loop/status-fact.ts';
import type { AskFailure, Replied } from '../../tool-loop/types.ts';
import type { ComposedReply } from './steps/compose-reply.ts';
import type { TurnActions, TurnContext, TurnEvent, TurnInput } from './types.ts';

/** Stored with every snapshot; raise it with each change that old snapshots do not fit. */
export const TURN_MACHINE_VERSION = 1;

const TURN_TIMEOUT = 'turn_timeout: the reply took longer than a turn may take';

const turnSetup = setup({
  types: { input: {} as TurnInput, context: {} as TurnContext, events: {} as TurnEvent },
  actions: {
    // Only named here; kind.ts executes them.
    fact: (_, _params: TurnActions['fact']) => {},
    effect: (_, _params: TurnActions['effect']) => {},
    supersede: (_, _params: TurnActions['supersede']) => {},
    timer: (_, _params: TurnActions['timer']) => {},
    disarm: (_, _params: TurnActions['disarm']) => {},
  },
});

const composing = asking<TurnContext, TurnEvent, ComposedReply, TurnAction>({
  states: { asking: 'composing', ended: 'completed', failed: 'failed' },
  actorIdOf: ({ turnId }) => turnId,
  loopOf: ({ callNo }) => ({ effectNo: callNo, unusable: 0 }),
  keep: ({ effectNo }) => (effectNo === undefined ? {} : { callNo: effectNo }),
  // The router falls back to other models by itself; a turn asks once.
  modelsOf: () => ['default'],
  callOf: ({ deadlineAtMs }, { id }) => ({ kind: 'router-call', id, deadlineAtMs }),
  meaningOf: (reply) => (reply.type === 'message' ? { type: 'end' } : reply),
  onEnd: [{ type: 'fact', params: message }],
  failed: (_, failure) => ({ failure: errorOf(failure) }),
  interruptions: [
    { on: 'turn.cancel', target: 'cancelled', actions: [{ type: 'fact', params: statusFact('cancelled') }] },
    { on: 'turn.poisoned', target: 'failed', actions: [failAs('engine_error: a command of this turn could not be applied')] },
    {
      on: 'turn.deadline',
      guard: ({ context, event }) => event.type === 'turn.deadline' && event.turnId === context.turnId,
      target: 'failed',
      actions: [failAs(TURN_TIMEOUT)],
    },
  ],
  joins: ['message.joined'],
});

/**
 * One response cycle of a session:
 *
 *   matching ──▶ composing (actors/tool-loop, without tools) ──a usable reply──▶ completed
 *                    ├──message.joined──▶ composing (the call is superseded, another is opened)
 *                    ├──turn.cancel──▶ cancelled
 *                    └──call.failed, an unusable reply | turn.deadline | turn.poisoned──▶ failed
 *
 * Every transition to a final state appends exactly one `ready`, as the last event. Pure: no clock, no I/O. The runtime calls
 * `transition()` and stores what the returned actions name in one commit.
 */
export const turnMachine = turnSetup.createMachine({
  id: 'turn',
  context: ({ input }) => ({ turnId: input.turnId, deadlineAtMs: input.atMs + input.timeoutMs, callNo: 0 }),
  initial: 'matching',
  states: {
    matching: {
      entry: [
        { type: 'fact', params: statusFact('acknowledged') },
        { type: 'timer', params: ({ context }) => ({ key: deadlineKeyOf(context.turnId), atMs: context.deadlineAtMs }) },
      ],
      // Policies are not matched yet, so `processing` with the stage `matching` is left out.
      always: { target: 'composing', actions: { type: 'fact', params: statusFact('typing') } },
    },
    composing,
    completed: { type: 'final', entry: settle() },
    cancelled: { type: 'final', entry: settle() },
    failed: { type: 'final', entry: [{ type: 'fact', params: error }, ...settle()] },
  },
});

type TurnAction = { [Type in keyof TurnActions]: { type: Type; params: TurnActions[Type] } }[keyof TurnActions];

function settle() {
  return [
    { type: 'fact' as const, params: statusFact('ready') },
    { type: 'disarm' as const, params: ({ context }: { context: TurnContext }) => ({ key: deadlineKeyOf(context.turnId) }) },
  ];
}

function failAs(failure: string) {
  return turnSetup.assign({ failure });
}

/** Readers of the call's parts know the message's id already. */
function message({ event: { callId, reply } }: { event: Replied<ComposedReply> }): TurnActions['fact'] {
  if (reply.type !== 'message') throw new TypeError('a turn that ends without a message');
  const { text, model, provider } = reply;
  return { content: { kind: 'assistant_message', text }, id: replyEventId(callId), metadata: { model, provider } };
}

/** Safe to show; the cause is in the logs. */
function errorOf(failure: AskFailure): string {
  if (failure.type === 'unusable') return 'engine_error: the model returned no reply';
  // A model call's only time limit is the turn's deadline, so `router.timeout` is that deadline by the worker's clock.
  return failure.code === 'router.timeout' ? TURN_TIMEOUT : `engine_error: the model call failed (${failure.code})`;
}

/**
 * The turn's error. Model calls time out at the turn's deadline, so their failures race its timer: from the deadline on every failure becomes the
 * timeout, whichever is applied first.
 */
function error({ context: { failure, deadlineAtMs }, event }: { context: TurnContext; event: TurnEvent }): TurnActions['fact'] {
  return statusFact('error', { detail: event.atMs < deadlineAtMs ? (failure ?? null) : TURN_TIMEOUT });
}
