import { assign, type EventObject, enqueueActions, type MachineContext } from 'xstate';
import type { LoopActions } from './types.ts';

type LoopAction = { [Type in keyof LoopActions]: { type: Type; params: LoopActions[Type] } }[keyof LoopActions];

type Collect<Context extends MachineContext, Seen extends EventObject, Event extends EventObject> = Parameters<
  typeof enqueueActions<Context, Seen, undefined, Event, never, LoopAction, never, never, EventObject>
>[0];

/** XState's actions, typed for the machine of a user. `Seen`: the event of the transition. */
export function machineActions<Context extends MachineContext, Event extends EventObject>() {
  return {
    change: <Seen extends EventObject>(changeOf: (args: { context: Context; event: Seen }) => Partial<Context>) =>
      assign<Context, Seen, undefined, Event, never>(changeOf),
    enqueued: <Seen extends EventObject>(collect: Collect<Context, Seen, Event>) =>
      enqueueActions<Context, Seen, undefined, Event, never, LoopAction, never, never, EventObject>(collect),
  };
}
