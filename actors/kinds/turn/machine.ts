import { and } from 'xstate';
import { replyEventId } from '#bus/messages/session.ts';
import { type Asker, asking, interruptedBy } from '../../tool-loop/asking.ts';
import { effectIdOf } from '../../tool-loop/effect-ids.ts';
import { statusFact } from '../../tool-loop/status-fact.ts';
import type { AskFailure, Replied } from '../../tool-loop/types.ts';
import { beginCheck, draftMessage, isDue, isMissed, isSent, isToBeChecked, settleCheck } from './check-states.ts';
import { armDeadline, disarmDeadline, storeDeadline } from './deadline.ts';
import {
  ask,
  askAgain,
  atMsOf,
  beginSettling,
  beginTyping,
  endBatch,
  engineAtStart,
  hasEngine,
  isAwaited,
  isCancelledLate,
  isComposing,
  isLastAwaited,
  isMalformedAgain,
  isOverBudget,
  resolve,
  restart,
  settleStep,
  stageMalformed,
} from './engine-states.ts';
import { hold, isHeld, isHeldBy, isUntouched, release } from './moderating-states.ts';
import { beginShortTyping, dropPreamble, isPreamble, openPreamble, passPreamble, preambleAtStart, renewPreamble, takePreamble } from './preamble-states.ts';
import { awaitsSearch, beginRetrieving, endSearch, isLastOfSearch, isSearchAwaited, openSearch, settleSearch } from './search-states.ts';
import type { ComposedReply } from './steps/compose-reply.ts';
import { type TurnAction, turnSetup } from './turn-setup.ts';
import type { TurnActions, TurnContext, TurnEvent, TurnInput } from './types.ts';

/** Stored with every snapshot; raise it with each change that old snapshots do not fit. */
export const TURN_MACHINE_VERSION = 5;

const TURN_TIMEOUT = 'turn_timeout: the reply took longer than a turn may take';

const UNMODERATED = 'moderation_unavailable: a message could not be checked by moderation';

const cancelledFact = { type: 'fact' as const, params: statusFact('cancelled') };

const sentDraft = { type: 'fact' as const, params: draftMessage };

const interruptions: Asker<TurnContext, TurnEvent, ComposedReply, TurnAction>['interruptions'] = [
  { on: 'turn.cancel', target: 'cancelled', actions: [cancelledFact] },
  { on: 'turn.poisoned', target: 'failed', actions: [failAs('engine_error: a command of this turn could not be applied')] },
  {
    on: 'turn.deadline',
    guard: ({ context, event }) => event.type === 'turn.deadline' && event.turnId === context.turnId,
    target: 'failed',
    actions: [failAs(TURN_TIMEOUT)],
  },
];

const composing = asking<TurnContext, TurnEvent, ComposedReply, TurnAction>({
  states: { asking: 'composing', ended: 'completed', failed: 'failed' },
  actorIdOf: ({ turnId }) => turnId,
  loopOf: ({ callNo }) => ({ effectNo: callNo, unusable: 0 }),
  keep: ({ effectNo }) => (effectNo === undefined ? {} : { callNo: effectNo }),
  // The router falls back to other models by itself; a turn asks once.
  modelsOf: () => ['default'],
  callOf: ({ deadlineAtMs, engine }, { id }) => ({
    kind: 'router-call',
    id,
    deadlineAtMs,
    ...(engine && { staged: engine.stepCount }),
    ...(engine?.isToCheck && { isWithheld: true }),
  }),
  meaningOf: (reply) => (reply.type === 'message' ? { type: 'end' } : { type: 'unusable', finishReason: 'finishReason' in reply ? reply.finishReason : '' }),
  onEnd: [passPreamble, { type: 'fact', params: message }],
  failed: (_, failure) => ({ failure: errorOf(failure) }),
  interruptions,
  // In the machine: with an engine, all begins anew.
  joins: [],
});

const whileChecking = interruptedBy(interruptions, endBatch);

/** Effects of a turn that waits for moderation: it has none. */
const nothingAwaited = turnSetup.enqueueActions(() => {});

/** XState's first event has the machine's input. */
const stageOpening = turnSetup.enqueueActions(({ event, enqueue }) => {
  const { opening } = (event as unknown as { input: TurnInput }).input;
  if (opening !== undefined) enqueue({ type: 'stage', params: { seq: 0, row: opening.row } });
});

const remember = turnSetup.enqueueActions(({ context, enqueue }) => {
  if (context.engine !== undefined || context.preamble !== undefined) enqueue({ type: 'remember', params: {} });
});

const supersedeCall = turnSetup.enqueueActions(({ context, enqueue }) => {
  enqueue({ type: 'supersede', params: { id: effectIdOf(context.turnId, context.callNo) } });
});

/**
 * One response cycle of a session:
 *
 *   matching ──▶ composing (actors/tool-loop, without tools) ──a usable reply──▶ completed
 *      │             ├──message.joined──▶ composing (the call is superseded, another is opened)
 *      │             ├──turn.cancel──▶ cancelled
 *      │             └──call.failed, an unusable reply | turn.deadline | turn.poisoned──▶ failed
 *      └──the agent has policies──▶ deciding ──calls are missing──▶ awaiting ──the last has its row──▶ deciding
 *                                      └──nothing is missing──▶ composing     ├──message.joined──▶ deciding (all begins anew)
 *                                                                    └──turn.cancel, while a tool runs that can't be called again──▶ settling
 *
 *   deciding ──nothing is missing but what is retrieved──▶ retrieving ──it has come, or is given up──▶ composing
 *
 *   settling ──the last of those has its row | turn.deadline (within 30 s)──▶ cancelled
 *
 *   composing ──a reply, and policies of high criticality are in force──▶ checking ──it follows them, or nothing is found out──▶ completed
 *                                                                          └──it does not──▶ composing (once, without another check)
 *
 *   each state before the reply ──message.joined, while messages are being checked by moderation──▶ moderating (what is awaited is superseded)
 *   moderating ──the last one is checked──▶ deciding | composing (all begins anew)      matching ──messages are being checked──▶ moderating
 *              └──one could not be checked──▶ failed
 *
 * What is missing is decided outside (actors/engine/decide.ts), from rows, and comes with the event: here are only ids and numbers.
 * Every transition to a final state appends exactly one `ready`, as the last event. Pure: no clock, no I/O. The runtime calls
 * `transition()` and stores what the returned actions name in one commit.
 */
export const turnMachine = turnSetup.createMachine({
  id: 'turn',
  context: ({ input }) => {
    const { turnId, atMs, timeoutMs, opening, held } = input;
    const preamble = preambleAtStart(input);
    return {
      turnId,
      deadlineAtMs: atMs + timeoutMs,
      callNo: 0,
      ...(opening && { engine: engineAtStart(opening, held !== undefined) }),
      ...(preamble && { preamble }),
      ...(held && { held }),
      ...(held && opening === undefined && { hasDeadlineRow: true }),
    };
  },
  initial: 'matching',
  on: { 'preamble.settled': { guard: isPreamble, actions: takePreamble } },
  states: {
    matching: {
      entry: [{ type: 'fact', params: statusFact('acknowledged') }, { type: 'timer', params: armDeadline }, openPreamble],
      always: [
        { guard: isHeld, target: 'moderating' },
        { guard: hasEngine, target: 'deciding', actions: [stageOpening, openSearch] },
        { target: 'composing', actions: beginShortTyping },
      ],
    },
    /** Messages are being checked, and no model sees them before. The session awaits the checks. */
    moderating: {
      on: {
        ...interruptedBy(interruptions, nothingAwaited),
        'message.joined': { actions: hold },
        'messages.checked': [
          { guard: isHeldBy, actions: hold },
          { guard: hasEngine, target: 'deciding', actions: [release, restart, openSearch] },
          { guard: isUntouched, target: 'composing', actions: [release, beginShortTyping] },
          { target: 'composing', actions: release },
        ],
        'moderation.failed': { target: 'failed', actions: failAs(UNMODERATED) },
      },
    },
    /** Left at once. */
    deciding: {
      always: [
        { guard: and([isComposing, awaitsSearch]), target: 'retrieving', actions: [resolve, beginRetrieving] },
        { guard: isComposing, target: 'composing', actions: [resolve, beginTyping] },
        { guard: isOverBudget, target: 'failed', actions: failAs('engine_error: the turn used more model calls or tokens than a turn may use') },
        { target: 'awaiting' },
      ],
    },
    awaiting: {
      entry: ask,
      on: {
        ...interruptedBy(interruptions, endBatch),
        'turn.cancel': [
          { guard: isCancelledLate, target: 'settling', actions: [passPreamble, beginSettling] },
          { target: 'cancelled', actions: [endBatch, cancelledFact] },
        ],
        'message.joined': [
          { guard: isHeldBy, target: 'moderating', actions: [endBatch, endSearch, hold] },
          { target: 'deciding', actions: [endBatch, endSearch, renewPreamble, restart, openSearch] },
        ],
        'step.settled': [
          { guard: isLastAwaited, target: 'deciding', actions: settleStep },
          { guard: isAwaited, actions: settleStep },
        ],
        'search.settled': { guard: isSearchAwaited, actions: settleSearch },
        'step.malformed': [
          { guard: isMalformedAgain, target: 'failed', actions: [stageMalformed, endBatch, failAs('engine_error: the model gave no answer that can be read')] },
          { guard: isAwaited, actions: askAgain },
        ],
        'call.failed': {
          guard: isAwaited,
          target: 'failed',
          actions: [
            endBatch,
            turnSetup.assign({ failure: ({ event }) => (event.type === 'call.failed' ? errorOf({ type: 'call-failed', code: event.failure.code }) : '') }),
          ],
        },
      },
    },
    /** All is decided, and what the reply is to use is still looked for. */
    retrieving: {
      on: {
        ...interruptedBy(interruptions, endSearch),
        'message.joined': [
          { guard: isHeldBy, target: 'moderating', actions: [endSearch, hold] },
          { target: 'deciding', actions: [endSearch, renewPreamble, restart, openSearch] },
        ],
        'search.settled': [
          { guard: isLastOfSearch, target: 'composing', actions: [settleSearch, beginTyping] },
          { guard: isSearchAwaited, actions: settleSearch },
        ],
      },
    },
    /** Cancelled, while calls run that can't be taken back. */
    settling: {
      on: {
        'step.settled': [
          { guard: isLastAwaited, target: 'cancelled', actions: [settleStep, cancelledFact] },
          { guard: isAwaited, actions: settleStep },
        ],
        'turn.deadline': {
          guard: ({ context, event }) => event.turnId === context.turnId,
          target: 'cancelled',
          actions: [endBatch, cancelledFact],
        },
        'turn.cancel': {
          guard: ({ event }) => event.mayWait !== true,
          target: 'cancelled',
          actions: [endBatch, cancelledFact],
        },
        'turn.poisoned': { target: 'cancelled', actions: [endBatch, cancelledFact] },
      },
    },
    composing: {
      ...composing,
      on: {
        ...composing.on,
        // With the newest template.
        'call.replied': [
          { guard: isUnrendered, target: 'composing', reenter: true },
          { guard: isToBeChecked, target: 'checking', actions: beginCheck },
          ...composing.on['call.replied'],
        ],
        'message.joined': [
          { guard: isHeldBy, target: 'moderating', actions: [supersedeCall, storeDeadline, hold] },
          { guard: hasEngine, target: 'deciding', actions: [supersedeCall, renewPreamble, restart, openSearch] },
          { target: 'composing', reenter: true, actions: [supersedeCall, renewPreamble] },
        ],
      },
    },
    /** The reply exists, and nothing of it is shown before it is known to follow the policies of high criticality. */
    checking: {
      on: {
        ...whileChecking,
        'message.joined': [
          { guard: isHeldBy, target: 'moderating', actions: [endBatch, hold] },
          { target: 'deciding', actions: [endBatch, renewPreamble, restart, openSearch] },
        ],
        'check.settled': [
          { guard: isSent, target: 'completed', actions: [settleCheck, passPreamble, sentDraft] },
          { guard: isMissed, target: 'composing', actions: settleCheck },
        ],
        'step.malformed': [
          { guard: isSent, target: 'completed', actions: [stageMalformed, settleCheck, passPreamble, sentDraft] },
          { guard: isAwaited, actions: askAgain },
        ],
        'turn.deadline': [{ guard: isDue, target: 'completed', actions: [settleCheck, passPreamble, sentDraft] }, whileChecking['turn.deadline']],
      },
    },
    completed: { type: 'final', entry: [remember, ...settle()] },
    cancelled: { type: 'final', entry: [dropPreamble, ...settle()] },
    failed: { type: 'final', entry: [dropPreamble, { type: 'fact', params: error }, ...settle()] },
  },
});

function settle() {
  return [endSearch, { type: 'fact' as const, params: statusFact('ready') }, { type: 'disarm' as const, params: disarmDeadline }];
}

function isUnrendered({ context, event }: { context: TurnContext; event: Replied<ComposedReply> }): boolean {
  return event.reply.type === 'unrendered' && event.callId === effectIdOf(context.turnId, context.callNo);
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
  return statusFact('error', { detail: atMsOf(event) < deadlineAtMs ? (failure ?? null) : TURN_TIMEOUT });
}
