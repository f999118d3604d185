import { assign, setup } from 'xstate';
import type { SessionStatus } from '#shared/contracts/agent/conversation-event.ts';
import { toolMessage } from '../../engine/tool-message.ts';
import { capError, engineError, type LossReason, sentenceOf, sessionError, timeoutError, toolError, withinTime } from './failures.ts';
import type { RunActions, RunContext, RunError, RunEvent, RunInput, StepMessage } from './types.ts';

/** Stored with every snapshot; raise it with each change that old snapshots do not fit. */
export const RUN_MACHINE_VERSION = 1;

/** For all servers of a run. Lets two workers in a row die with the item, each noticed when its lease expires (bus/renew-lease.ts). */
const TOOL_LIST_TIMEOUT_MS = 45_000;
const TOOL_CALL_TIMEOUT_MS = 90_000;
/** A worker reports its own timeout at the deadline; without that report, the item counts as lost. */
const OVERDUE_GRACE_MS = 5_000;

const runSetup = setup({
  types: { input: {} as RunInput, context: {} as RunContext, events: {} as RunEvent },
  guards: {
    isRefused: ({ context }) => context.failure !== null,
    hasServers: ({ context }) => context.servers.length > 0,
    /** Ignores results of superseded effects, so late and repeated deliveries are harmless. */
    isCurrentEffect: ({ context, event }) => 'callId' in event && event.callId === currentEffectOf(context),
    isEveryServerListed: ({ context, event }) =>
      event.type === 'tools.listed' && event.callId === currentEffectOf(context) && unlistedServerOf(context, event) === undefined,
    isOutput: ({ context, event }) => replyTo(context, event)?.type === 'output',
    isUnusable: ({ context, event }) => replyTo(context, event)?.type === 'unusable',
    isUnusableForGood: ({ context, event }) => replyTo(context, event)?.type === 'unusable' && context.unusable >= (context.hasFallbackModel ? 2 : 1),
    isLastIteration: ({ context, event }) => replyTo(context, event) !== null && context.iteration >= context.maxIterations,
    hasCallsToMake: ({ context, event }) => {
      const reply = replyTo(context, event);
      return reply?.type === 'tools' && reply.calls.length > 0;
    },
    isPending: ({ context, event }) => pendingCallOf(context, event) !== undefined,
    isLastPending: ({ context, event }) => pendingCallOf(context, event) !== undefined && context.pending.length === 1,
    isServerLost: ({ context, event }) => pendingCallOf(context, event) !== undefined && lostServerOf(event) !== null,
    isThisRun: ({ context, event }) => event.type === 'run.deadline' && event.actorId === context.runId,
  },
  actions: {
    // Only named here; kind.ts executes them.
    started: (_, _params: RunActions['started']) => {},
    fact: (_, _params: RunActions['fact']) => {},
    stage: (_, _params: RunActions['stage']) => {},
    toolEvent: (_, _params: RunActions['toolEvent']) => {},
    effect: (_, _params: RunActions['effect']) => {},
    supersede: (_, _params: RunActions['supersede']) => {},
    timer: (_, _params: RunActions['timer']) => {},
    disarm: (_, _params: RunActions['disarm']) => {},
    settle: (_, _params: RunActions['settle']) => {},
  },
});

const stageReply = runSetup.enqueueActions(({ context, event, enqueue }) => {
  const reply = replyTo(context, event);
  const messages: readonly StepMessage[] = reply !== null && 'messages' in reply ? reply.messages : [];
  for (const message of messages) enqueue({ type: 'stage', params: { message } });
  enqueue.assign({
    stepCount: context.stepCount + messages.length,
    invalidOutput: reply?.type === 'invalid-output' ? reply.violation : context.invalidOutput,
  });
});

const askModel = runSetup.enqueueActions(({ context, enqueue }) => {
  const effectNo = context.effectNo + 1;
  const { deadlineAtMs, stepCount, lists } = context;
  enqueue.assign({ effectNo });
  enqueue({
    type: 'effect',
    params: { kind: 'router-call', id: effectIdOf(context.runId, effectNo), deadlineAtMs, stepCount, useFallbackModel: context.unusable === 2, lists },
  });
});

const listTools = runSetup.enqueueActions(({ context, enqueue }) => {
  const effectNo = context.effectNo + 1;
  const id = effectIdOf(context.runId, effectNo);
  const deadlineAtMs = listDeadlineOf(context);
  enqueue.assign({ effectNo });
  enqueue({ type: 'effect', params: { kind: 'tool-list', id, deadlineAtMs, servers: context.servers } });
  enqueue({ type: 'timer', params: overdueTimer(id, deadlineAtMs, 'tool-list') });
});

/** Opens one effect per call of the batch. */
const callTools = runSetup.enqueueActions(({ context, event, enqueue }) => {
  const reply = replyTo(context, event);
  if (reply?.type !== 'tools' || event.type !== 'call.replied') return;
  const deadlineAtMs = Math.min(context.deadlineAtMs, event.atMs + TOOL_CALL_TIMEOUT_MS);
  const pending = reply.calls.map(({ toolCallId, toolId }, index) => ({
    callId: effectIdOf(context.runId, context.effectNo + 1 + index),
    toolCallId,
    toolId,
  }));
  for (const [index, { toolCallId, toolId, listHash }] of reply.calls.entries()) {
    const id = effectIdOf(context.runId, context.effectNo + 1 + index);
    enqueue({ type: 'effect', params: { kind: 'tool-call', id, deadlineAtMs, toolCallId, toolId, listHash } });
    enqueue({ type: 'timer', params: overdueTimer(id, deadlineAtMs, 'tool-call') });
  }
  enqueue.assign({ effectNo: context.effectNo + pending.length, pending, batch: reply.order });
});

/** Stages a call's outcome. */
const settleCall = runSetup.enqueueActions(({ context, event, enqueue }) => {
  const call = pendingCallOf(context, event);
  if (call === undefined || event.type !== 'tool.settled') return;
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(call.callId) } });
  enqueue({ type: 'stage', params: { message: toolMessage(call.toolCallId, event.outcome) } });
  enqueue.assign({ stepCount: context.stepCount + 1, pending: context.pending.filter(({ callId }) => callId !== call.callId) });
});

const endBatch = runSetup.enqueueActions(({ context, enqueue }) => {
  enqueue({ type: 'toolEvent', params: { calls: context.batch } });
  enqueue.assign({ batch: [] });
});

const supersedeCall = runSetup.enqueueActions(({ context, enqueue }) => {
  enqueue({ type: 'supersede', params: { id: currentEffectOf(context) } });
});

const supersedeList = runSetup.enqueueActions(({ context, enqueue }) => {
  const id = currentEffectOf(context);
  enqueue({ type: 'supersede', params: { id } });
  enqueue({ type: 'disarm', params: { key: overdueKeyOf(id) } });
});

const supersedeTools = runSetup.enqueueActions(({ context, enqueue }) => {
  for (const { callId } of context.pending) {
    enqueue({ type: 'supersede', params: { id: callId } });
    enqueue({ type: 'disarm', params: { key: overdueKeyOf(callId) } });
  }
  enqueue.assign({ pending: [], batch: [] });
});

const nextIteration = runSetup.assign({ iteration: ({ context }) => context.iteration + 1, unusable: 0 });

/**
 * One run of an autonomous routine:
 *
 *   starting ──▶ listing ──tools.listed──▶ thinking ──emit_output with a valid value──▶ succeeded
 *       │           (only with tool servers)  │  ▲ └──text, an invalid value, only refused tools──▶ thinking (next iteration)
 *       ├──────────────────────────────────▶──┘  │ └──unusable reply──▶ thinking (same iteration: once more, then the fallback model)
 *       │                                tools│  │
 *       │                                     ▼  │the last of the batch has settled (next iteration)
 *       │                                   tooling
 *       └──refused──▶ failed ◀── a tool server unavailable | call.failed | the last iteration's reply has no output
 *                            ◀── run.deadline | run.poisoned | run.orphaned, in any waiting state
 *
 * An unusable reply does not count as an iteration. Tool calls of the last iteration are not made, since no model call would read their
 * results. Every transition to a final state supersedes open effects, disarms their timers, appends exactly one `ready`, and settles once.
 * Pure: no clock, no I/O. The runtime calls `transition()` and stores what the returned actions name in one commit.
 */
export const runMachine = runSetup.createMachine({
  id: 'run',
  context: ({ input }) => contextOf(input),
  initial: 'starting',
  states: {
    starting: {
      entry: [
        { type: 'started', params: {} },
        { type: 'fact', params: status('acknowledged') },
      ],
      always: [
        { guard: 'isRefused', target: 'failed' },
        { guard: 'hasServers', target: 'listing', actions: begin() },
        { target: 'thinking', actions: [...begin(), nextIteration] },
      ],
    },
    listing: {
      entry: listTools,
      on: {
        ...interruptedBy(supersedeList),
        'tools.listed': [
          {
            guard: 'isEveryServerListed',
            target: 'thinking',
            actions: [{ type: 'disarm', params: currentOverdueKey }, assign({ lists: ({ event }) => event.lists }), nextIteration],
          },
          // Without some of its tools the routine might succeed on incomplete data, unnoticed. A server lost later, during a call, fails the run as
          // well.
          {
            guard: 'isCurrentEffect',
            target: 'failed',
            actions: [
              { type: 'disarm', params: currentOverdueKey },
              assign(({ context, event }) => ({ unavailable: event.unavailable, failure: unlistedError(context, event) })),
            ],
          },
        ],
      },
    },
    thinking: {
      entry: askModel,
      on: {
        ...interruptedBy(supersedeCall),
        'call.replied': [
          {
            guard: 'isOutput',
            target: 'succeeded',
            actions: [
              { type: 'fact', params: status('ready') },
              { type: 'disarm', params: deadlineKey },
              { type: 'settle', params: ({ event }) => ({ state: 'succeeded', output: event.reply.type === 'output' ? event.reply.output : {} }) },
            ],
          },
          { guard: 'isUnusableForGood', target: 'failed', actions: assign({ failure: ({ event }) => unusableError(event) }) },
          { guard: 'isUnusable', target: 'thinking', reenter: true, actions: assign({ unusable: ({ context }) => context.unusable + 1 }) },
          { guard: 'isLastIteration', target: 'failed', actions: [stageReply, assign({ failure: ({ context }) => capError(context) })] },
          {
            guard: 'hasCallsToMake',
            target: 'tooling',
            actions: [stageReply, { type: 'fact', params: status('processing', { stage: 'tools' }) }, callTools],
          },
          { guard: 'isCurrentEffect', target: 'thinking', reenter: true, actions: [stageReply, nextIteration] },
        ],
        'call.failed': {
          guard: 'isCurrentEffect',
          target: 'failed',
          actions: assign({ failure: ({ context, event }) => failedCallError(context, event) }),
        },
      },
    },
    tooling: {
      on: {
        ...interruptedBy(supersedeTools),
        'tool.settled': [
          {
            guard: 'isServerLost',
            target: 'failed',
            actions: [assign({ failure: ({ context, event }) => lostServerError(context, event) }), settleCall, supersedeTools],
          },
          { guard: 'isLastPending', target: 'thinking', actions: [settleCall, endBatch, nextIteration] },
          { guard: 'isPending', actions: settleCall },
        ],
      },
    },
    succeeded: { type: 'final' },
    failed: {
      type: 'final',
      entry: [
        assign({ failure: ({ context, event }) => settledFailure(context, event) }),
        { type: 'fact', params: ({ context }) => status('error', { detail: sentenceOf(failureOf(context)) }) },
        { type: 'fact', params: status('ready') },
        { type: 'disarm', params: deadlineKey },
        { type: 'settle', params: ({ context }) => ({ state: 'failed', error: failureOf(context) }) },
      ],
    },
  },
});

/** Id of the effect, its work item and the command with its result. `effectNo` counts from 1. */
export function effectIdOf(runId: string, effectNo: number): string {
  return `${runId}-${effectNo}`;
}

export function deadlineKeyOf(runId: string): string {
  return `${runId}-deadline`;
}

/** Key of the timer for an effect without a result in time. */
export function overdueKeyOf(effectId: string): string {
  return `${effectId}-overdue`;
}

type Args<Type extends RunEvent['type'] = RunEvent['type']> = { context: RunContext; event: Extract<RunEvent, { type: Type }> };

function contextOf(input: RunInput): RunContext {
  const { runId, atMs, deadlineAtMs, timeoutMs, maxIterations, servers, hasFallbackModel, refusal } = input;
  return {
    runId,
    startedAtMs: atMs,
    deadlineAtMs,
    timeoutMs,
    maxIterations,
    hasFallbackModel,
    servers,
    iteration: 0,
    unusable: 0,
    effectNo: 0,
    stepCount: 0,
    lists: {},
    unavailable: {},
    pending: [],
    batch: [],
    invalidOutput: null,
    failure: refusal ?? (deadlineAtMs <= atMs ? timeoutError(timeoutMs) : null),
  };
}

function begin() {
  return [
    { type: 'fact' as const, params: status('processing', { stage: 'thinking' }) },
    {
      type: 'timer' as const,
      params: ({ context }: { context: RunContext }): RunActions['timer'] => ({
        key: deadlineKeyOf(context.runId),
        atMs: context.deadlineAtMs,
        command: 'run.deadline',
      }),
    },
  ];
}

/** Events that fail a run in any waiting state; `supersede` closes the effects that the state awaits. */
function interruptedBy<Supersede>(supersede: Supersede) {
  const failAs = (failure: RunError) => runSetup.assign({ failure });
  return {
    'run.deadline': {
      guard: 'isThisRun' as const,
      target: 'failed' as const,
      actions: [supersede, runSetup.assign({ failure: ({ context }) => timeoutError(context.timeoutMs) })] as const,
    },
    'run.poisoned': { target: 'failed' as const, actions: [supersede, failAs(engineError('a command of this run could not be applied'))] as const },
    'run.orphaned': {
      target: 'failed' as const,
      actions: [supersede, failAs(sessionError('the session of this run was deleted'))] as const,
    },
  };
}

function currentEffectOf({ runId, effectNo }: RunContext): string {
  return effectIdOf(runId, effectNo);
}

function currentOverdueKey({ context }: { context: RunContext }): RunActions['disarm'] {
  return { key: overdueKeyOf(currentEffectOf(context)) };
}

function deadlineKey({ context }: { context: RunContext }): RunActions['disarm'] {
  return { key: deadlineKeyOf(context.runId) };
}

function overdueTimer(callId: string, deadlineAtMs: number, kind: 'tool-call' | 'tool-list'): RunActions['timer'] {
  return { key: overdueKeyOf(callId), atMs: deadlineAtMs + OVERDUE_GRACE_MS, command: { type: 'effect.overdue', callId, kind } };
}

/** Null unless it is the awaited reply. */
function replyTo(context: RunContext, event: RunEvent) {
  return event.type === 'call.replied' && event.callId === currentEffectOf(context) ? event.reply : null;
}

function pendingCallOf({ pending }: RunContext, event: RunEvent) {
  return event.type === 'tool.settled' ? pending.find(({ callId }) => callId === event.callId) : undefined;
}

function listDeadlineOf({ deadlineAtMs, startedAtMs }: RunContext): number {
  return Math.min(deadlineAtMs, startedAtMs + TOOL_LIST_TIMEOUT_MS);
}

function unlistedServerOf({ servers }: RunContext, { lists }: Args<'tools.listed'>['event']): string | undefined {
  return servers.find((server) => !Object.hasOwn(lists, server));
}

function lostServerOf(event: RunEvent): LossReason | null {
  if (event.type !== 'tool.settled' || event.outcome.type !== 'failed') return null;
  const { reason } = event.outcome;
  return reason === 'unreachable' || reason === 'auth_failed' ? reason : null;
}

function unlistedError(context: RunContext, event: Args<'tools.listed'>['event']): RunError {
  // A worker's clock may be ahead of the host's: the cause decides, not the time.
  if (event.timedOut && listDeadlineOf(context) === context.deadlineAtMs) return timeoutError(context.timeoutMs);
  const server = unlistedServerOf(context, event) ?? '';
  const reason = event.unavailable[server] ?? 'unreachable';
  return toolError(`the tool server ${server}`, `${server}:*`, reason);
}

function lostServerError(context: RunContext, event: RunEvent): RunError {
  const toolId = pendingCallOf(context, event)?.toolId ?? '';
  const reason = lostServerOf(event) ?? 'unreachable';
  return toolError(`the server of the tool ${toolId}`, toolId, reason);
}

function unusableError(event: Args<'call.replied'>['event']): RunError {
  const finishReason = event.reply.type === 'unusable' ? event.reply.finishReason : '';
  return engineError(`the model gave no usable answer (${finishReason})`);
}

/** A model call's only time limit is the run's deadline, so `router.timeout` is that deadline by the worker's clock. */
function failedCallError({ timeoutMs }: RunContext, { failure }: Args<'call.failed'>['event']): RunError {
  return failure.code === 'router.timeout' ? timeoutError(timeoutMs) : engineError(`the model call failed (${failure.code})`);
}

function failureOf({ failure }: RunContext): RunError {
  return failure ?? engineError('the run failed');
}

/** @param event what ended the run; XState's init event, without `atMs`, at its start */
function settledFailure(context: RunContext, event: RunEvent): RunError {
  return withinTime(failureOf(context), context, 'atMs' in event ? event.atMs : context.startedAtMs);
}

function status(value: SessionStatus, { stage = null, detail = null }: { stage?: string | null; detail?: string | null } = {}): RunActions['fact'] {
  return { content: { kind: 'status', status: value, stage, error_detail: detail }, id: null, metadata: {} };
}
