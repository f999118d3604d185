import type { AnyEventObject, MachineContext, ParameterizedObject } from 'xstate';
import { interruptedBy } from './asking.ts';
import { settling } from './settling.ts';
import type { ToolUser } from './tool-user.ts';
import type { ToolSettled } from './types.ts';

/** Transitions of the state that waits for a batch: an interruption that finds calls which can not be taken back waits for those, in `windUp.state`. */
export function beginWindUp<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>(
  user: ToolUser<Context, Event, Reply, Named>,
) {
  const { windUp, loopOf, interruptions } = user;
  if (windUp === undefined) return {};
  const { interrupt, supersedeBut } = settling<Context, Event, Reply, Named>(user);
  const isKept = ({ context, event }: { context: Context; event: Event }) => {
    const kept = windUp.keeps(event);
    return loopOf(context).pending.some(({ callId }) => kept.includes(callId));
  };
  const atOnce = Object.values(
    interruptedBy(
      interruptions.filter(({ on }) => on === windUp.on),
      interrupt,
    ),
  );
  return { [windUp.on]: [{ guard: isKept, target: windUp.state, actions: [supersedeBut(windUp.keeps), ...windUp.actions] }, ...atOnce] };
}

/** The state that waits for calls which can not be taken back. Their outcomes stand in the batch's event, then the loop fails; their deadlines bound the wait. */
export function windingUp<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>(
  user: ToolUser<Context, Event, Reply, Named>,
) {
  type Args = { context: Context; event: ToolSettled };
  const { states, loopOf, interruptions, windUp } = user;
  const { pendingCallOf, settleCall, endBatch, interrupt } = settling<Context, Event, Reply, Named>(user);
  const others = interruptions.filter(({ on }) => on !== windUp?.on);
  return {
    on: {
      ...interruptedBy(others, interrupt),
      'tool.settled': [
        {
          guard: ({ context, event }: Args) => pendingCallOf({ context, event }) !== undefined && loopOf(context).pending.length === 1,
          target: states.failed,
          actions: [settleCall, endBatch],
        },
        { guard: ({ context, event }: Args) => pendingCallOf({ context, event }) !== undefined, actions: settleCall },
      ],
    },
  };
}
