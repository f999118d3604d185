import type { AnyEventObject, MachineContext, ParameterizedObject } from 'xstate';
import type { Asker, UserAction } from './asking.ts';
import type { Applied, LoopContext, LoopFailure, LoopReply, Replied } from './types.ts';

/** What a machine decides that asks a model with tools. */
export interface ToolUser<Context extends MachineContext, Event extends AnyEventObject, Reply, Named extends ParameterizedObject>
  extends Asker<Context, Event, Reply, Named, LoopReply> {
  states: { asking: string; tooling: string; ended: string; failed: string };
  loopOf(context: Context): LoopContext;
  keep(change: Partial<LoopContext>): Partial<Context>;
  failed(context: Context, failure: LoopFailure): Partial<Context>;
  /** What the user keeps of a reply that is staged. */
  noted(reply: Reply): Partial<Context>;
  /** An interruption that waits for some calls of a batch; absent: none does. */
  windUp?: {
    on: Event['type'];
    state: string;
    /** Ids of the calls that it waits for. */
    keeps(event: Event): readonly string[];
    actions: readonly UserAction<Context, Event, Event, Named>[];
  };
  /** After the last iteration's reply, which did not end the loop, is staged. */
  spent: { target: string; actions: readonly UserAction<Context, Applied<Replied<Reply>>, Event, Named>[] };
}

/** The change that begins an iteration. */
export function nextIteration({ iteration }: LoopContext): Partial<LoopContext> {
  return { iteration: iteration + 1, unusable: 0 };
}
