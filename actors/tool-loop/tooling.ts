import type { AnyEventObject, MachineContext, ParameterizedObject } from 'xstate';
import { interruptedBy } from './asking.ts';
import { effectIdOf } from './effect-ids.ts';
import { machineActions } from './machine-actions.ts';
import { overdueTimer } from './overdue-timer.ts';
import { settling } from './settling.ts';
import { statusFact } from './status-fact.ts';
import { nextIteration, type ToolUser } from './tool-user.ts';
import type { Replied as AnyReplied, Applied, LoopReply, LossReason, ToolSettled } from './types.ts';
import { beginWindUp } from './winding-up.ts';

const TOOL_CALL_TIMEOUT_MS = 90_000;

/** Transitions of the state that asks, for replies that do not end the loop. */
export function toolReplies<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>({
  states,
  actorIdOf,
  loopOf,
  keep,
  meaningOf,
  noted,
  spent,
}: ToolUser<Context, Event, Reply, Named>) {
  type Replied = Applied<AnyReplied<Reply>>;
  type Args = { context: Context; event: Replied };
  const { change, enqueued } = machineActions<Context, Event>();
  const isCurrent = ({ context, event }: Args) => event.callId === effectIdOf(actorIdOf(context), loopOf(context).effectNo);
  const next = change<Replied>(({ context }) => keep(nextIteration(loopOf(context))));

  const stageReply = enqueued<Replied>(({ context, event, enqueue }) => {
    const meaning = meaningOf(event.reply);
    const messages = 'messages' in meaning ? meaning.messages : [];
    for (const message of messages) enqueue({ type: 'stage', params: { message } });
    enqueue.assign(() => ({ ...keep({ stepCount: loopOf(context).stepCount + messages.length }), ...noted(event.reply) }));
  });
  /** Opens one effect per call of the batch. */
  const callTools = enqueued<Replied>(({ context, event, enqueue }) => {
    const reply = meaningOf(event.reply);
    if (reply.type !== 'tools') return;
    const loop = loopOf(context);
    const deadlineAtMs = Math.min(loop.deadlineAtMs, event.atMs + TOOL_CALL_TIMEOUT_MS);
    const idOf = (index: number) => effectIdOf(actorIdOf(context), loop.effectNo + 1 + index);
    for (const [index, { toolCallId, toolId, listHash }] of reply.calls.entries()) {
      enqueue({ type: 'effect', params: { kind: 'tool-call', id: idOf(index), deadlineAtMs, toolCallId, toolId, listHash } });
      enqueue({ type: 'timer', params: overdueTimer(idOf(index), deadlineAtMs, 'tool-call') });
    }
    const pending = reply.calls.map(({ toolCallId, toolId }, index) => ({ callId: idOf(index), toolCallId, toolId }));
    enqueue.assign(() => keep({ effectNo: loop.effectNo + pending.length, pending, batch: reply.order }));
  });

  return [
    {
      guard: ({ context, event }: Args) => isCurrent({ context, event }) && loopOf(context).iteration >= loopOf(context).maxIterations,
      target: spent.target,
      actions: [stageReply, ...spent.actions],
    },
    {
      guard: ({ context, event }: Args) => isCurrent({ context, event }) && hasCallsToMake(meaningOf(event.reply)),
      target: states.tooling,
      actions: [stageReply, { type: 'fact' as const, params: statusFact('processing', { stage: 'tools' }) }, callTools],
    },
    { guard: isCurrent, target: states.asking, reenter: true, actions: [stageReply, next] },
  ];
}

/** The state that waits for the calls of a batch, which run concurrently. */
export function tooling<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>(
  user: ToolUser<Context, Event, Reply, Named>,
) {
  const { states, loopOf, failed, interruptions } = user;
  type Args = { context: Context; event: ToolSettled };
  const { change } = machineActions<Context, Event>();
  const { pendingCallOf, settleCall, endBatch, supersede, interrupt } = settling<Context, Event, Reply, Named>(user);

  return {
    on: {
      ...interruptedBy(interruptions, interrupt),
      ...beginWindUp(user),
      'tool.settled': [
        {
          guard: ({ context, event }: Args) => pendingCallOf({ context, event }) !== undefined && lossOf(event) !== null,
          target: states.failed,
          actions: [
            change<ToolSettled>(({ context, event }) =>
              failed(context, {
                type: 'server-lost',
                toolId: pendingCallOf({ context, event })?.toolId ?? '',
                reason: lossOf(event) ?? 'unreachable',
              }),
            ),
            settleCall,
            supersede,
          ],
        },
        {
          guard: ({ context, event }: Args) => pendingCallOf({ context, event }) !== undefined && loopOf(context).pending.length === 1,
          target: states.asking,
          actions: [settleCall, endBatch],
        },
        { guard: ({ context, event }: Args) => pendingCallOf({ context, event }) !== undefined, actions: settleCall },
      ],
    },
  };
}

function hasCallsToMake(meaning: LoopReply): boolean {
  return meaning.type === 'tools' && meaning.calls.length > 0;
}

function lossOf({ outcome }: ToolSettled): LossReason | null {
  if (outcome.type !== 'failed') return null;
  return outcome.reason === 'unreachable' || outcome.reason === 'auth_failed' ? outcome.reason : null;
}
