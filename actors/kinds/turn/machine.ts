import { assign, setup } from 'xstate';
import { replyEventId } from '#bus/messages/session.ts';
import type { SessionStatus } from '#shared/contracts/agent/conversation-event.ts';
import type { TurnActions, TurnContext, TurnEvent, TurnInput } from './types.ts';

/** Stored with every snapshot; raise it with each change that old snapshots do not fit. */
export const TURN_MACHINE_VERSION = 1;

const TURN_TIMEOUT = 'turn_timeout: the reply took longer than a turn may take';

/**
 * One response cycle of a session:
 *
 *   matching ──▶ composing ──call.completed──▶ completed
 *                    ├──message.joined──▶ composing (the call is superseded, another is opened)
 *                    ├──turn.cancel──▶ cancelled
 *                    └──call.failed | turn.deadline | turn.poisoned──▶ failed
 *
 * Every transition to a final state appends exactly one `ready`, as the last event. Pure: no clock, no I/O. The runtime calls
 * `transition()` and stores what the returned actions name in one commit.
 */
export const turnMachine = setup({
  types: { input: {} as TurnInput, context: {} as TurnContext, events: {} as TurnEvent },
  guards: {
    /** Ignores results of superseded calls, so late and repeated deliveries are harmless. */
    isCurrentCall: ({ context, event }) => 'callId' in event && event.callId === callIdOf(context),
    isUsableReply: ({ context, event }) =>
      event.type === 'call.completed' && event.callId === callIdOf(context) && event.finishReason !== 'error' && event.text.trim() !== '',
    isThisTurn: ({ context, event }) => event.type === 'turn.deadline' && event.turnId === context.turnId,
  },
  actions: {
    // Only named here; kind.ts executes them.
    fact: (_, _params: TurnActions['fact']) => {},
    effect: (_, _params: TurnActions['effect']) => {},
    supersede: (_, _params: TurnActions['supersede']) => {},
    timer: (_, _params: TurnActions['timer']) => {},
    disarm: (_, _params: TurnActions['disarm']) => {},
  },
}).createMachine({
  id: 'turn',
  context: ({ input }) => ({ turnId: input.turnId, deadlineAtMs: input.atMs + input.timeoutMs, callNo: 1 }),
  initial: 'matching',
  states: {
    matching: {
      entry: [
        { type: 'fact', params: status('acknowledged') },
        { type: 'timer', params: ({ context }) => ({ key: deadlineKeyOf(context), atMs: context.deadlineAtMs }) },
      ],
      // Policies are not matched yet, so `processing` with the stage `matching` is left out.
      always: {
        target: 'composing',
        actions: [
          { type: 'fact', params: status('typing') },
          { type: 'effect', params: routerCallOf },
        ],
      },
    },
    composing: {
      on: {
        'message.joined': {
          actions: [
            { type: 'supersede', params: ({ context }) => ({ id: callIdOf(context) }) },
            assign({ callNo: ({ context }) => context.callNo + 1 }),
            { type: 'effect', params: routerCallOf },
          ],
        },
        'call.completed': [
          {
            guard: 'isUsableReply',
            target: 'completed',
            actions: {
              type: 'fact',
              params: ({ event }) => ({
                content: { kind: 'assistant_message', text: event.text },
                id: replyEventId(event.callId),
                metadata: { model: event.model, provider: event.provider },
              }),
            },
          },
          { guard: 'isCurrentCall', target: 'failed', actions: { type: 'fact', params: failureAs('engine_error: the model returned no reply') } },
        ],
        'call.failed': {
          guard: 'isCurrentCall',
          target: 'failed',
          actions: { type: 'fact', params: failedCall },
        },
        'turn.cancel': {
          target: 'cancelled',
          actions: [
            { type: 'supersede', params: ({ context }) => ({ id: callIdOf(context) }) },
            { type: 'fact', params: status('cancelled') },
          ],
        },
        'turn.poisoned': {
          target: 'failed',
          actions: [
            { type: 'supersede', params: ({ context }) => ({ id: callIdOf(context) }) },
            { type: 'fact', params: failureAs('engine_error: a command of this turn could not be applied') },
          ],
        },
        'turn.deadline': {
          guard: 'isThisTurn',
          target: 'failed',
          actions: [
            { type: 'supersede', params: ({ context }) => ({ id: callIdOf(context) }) },
            { type: 'fact', params: error(TURN_TIMEOUT) },
          ],
        },
      },
    },
    completed: { type: 'final', entry: settle() },
    cancelled: { type: 'final', entry: settle() },
    failed: { type: 'final', entry: settle() },
  },
});

function settle() {
  return [
    { type: 'fact' as const, params: status('ready') },
    { type: 'disarm' as const, params: ({ context }: { context: TurnContext }) => ({ key: deadlineKeyOf(context) }) },
  ];
}

function status(value: SessionStatus, { detail = null }: { detail?: string | null } = {}): TurnActions['fact'] {
  return { content: { kind: 'status', status: value, stage: null, error_detail: detail }, id: null, metadata: {} };
}

/**
 * The turn's error. Model calls time out at the turn's deadline, so their failures race its timer: from the deadline on every failure becomes the
 * timeout, whichever is applied first.
 */
function failureAs(detail: string) {
  return ({ context, event }: { context: TurnContext; event: TurnEvent }) => error(event.atMs < context.deadlineAtMs ? detail : TURN_TIMEOUT);
}

/** A model call's only time limit is the turn's deadline, so `router.timeout` is that deadline by the worker's clock. */
function failedCall(args: { context: TurnContext; event: Extract<TurnEvent, { type: 'call.failed' }> }): TurnActions['fact'] {
  const { code } = args.event.failure;
  return code === 'router.timeout' ? error(TURN_TIMEOUT) : failureAs(`engine_error: the model call failed (${code})`)(args);
}

/** `detail` is safe to show; the cause is in the logs. */
function error(detail: string): TurnActions['fact'] {
  return status('error', { detail });
}

function routerCallOf({ context }: { context: TurnContext }): TurnActions['effect'] {
  return { kind: 'router-call', id: callIdOf(context), deadlineAtMs: context.deadlineAtMs };
}

/** Id of the effect, its work item and the command with its result. */
function callIdOf({ turnId, callNo }: TurnContext): string {
  return `${turnId}-${callNo}`;
}

function deadlineKeyOf({ turnId }: TurnContext): string {
  return `${turnId}-deadline`;
}
