import type { AnyEventObject, MachineContext, ParameterizedObject } from 'xstate';
import { toolMessage } from '../engine/tool-message.ts';
import { overdueKeyOf } from './effect-ids.ts';
import { machineActions } from './machine-actions.ts';
import { nextIteration, type ToolUser } from './tool-user.ts';
import type { ToolSettled } from './types.ts';

/** What happens to the calls of a batch, in each state that waits for them. */
export function settling<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>({
  loopOf,
  keep,
}: Pick<ToolUser<Context, Event, Reply, Named>, 'loopOf' | 'keep'>) {
  type Args = { context: Context; event: ToolSettled };
  const { enqueued } = machineActions<Context, Event>();
  const pendingCallOf = ({ context, event }: Args) => loopOf(context).pending.find(({ callId }) => callId === event.callId);
  /** @param keeps ids of the calls that go on */
  const supersedeBut = (keeps: (event: Event) => readonly string[], { logsSettled = false } = {}) =>
    enqueued<Event>(({ context, event, enqueue }) => {
      const kept = new Set(keeps(event));
      const { pending, batch } = loopOf(context);
      const others = pending.filter(({ callId }) => !kept.has(callId));
      for (const { callId } of others) {
        enqueue({ type: 'supersede', params: { id: callId } });
        enqueue({ type: 'disarm', params: { key: overdueKeyOf(callId) } });
      }
      const left = new Set(others.map(({ toolCallId }) => toolCallId));
      const going = pending.filter(({ callId }) => kept.has(callId));
      const calls = batch.filter(({ toolCallId }) => !left.has(toolCallId));
      if (logsSettled && going.length === 0 && calls.length > 0) enqueue({ type: 'toolEvent', params: { calls } });
      enqueue.assign(() => keep({ pending: going, batch: going.length === 0 ? [] : calls }));
    });
  return {
    pendingCallOf,
    supersedeBut,
    supersede: supersedeBut(() => []),
    /** At an interruption: what has settled before it stands in the log. */
    interrupt: supersedeBut(() => [], { logsSettled: true }),
    /** Stages a call's outcome. */
    settleCall: enqueued<ToolSettled>(({ context, event, enqueue }) => {
      const call = pendingCallOf({ context, event });
      if (call === undefined) return;
      const { stepCount, pending } = loopOf(context);
      enqueue({ type: 'disarm', params: { key: overdueKeyOf(call.callId) } });
      enqueue({ type: 'stage', params: { message: toolMessage(call.toolCallId, event.outcome) } });
      enqueue.assign(() => keep({ stepCount: stepCount + 1, pending: pending.filter(({ callId }) => callId !== call.callId) }));
    }),
    endBatch: enqueued<ToolSettled>(({ context, enqueue }) => {
      const loop = loopOf(context);
      enqueue({ type: 'toolEvent', params: { calls: loop.batch } });
      enqueue.assign(() => keep({ batch: [], ...nextIteration(loop) }));
    }),
  };
}
