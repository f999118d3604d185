import type { ActorMetadata, ActorName, ActorState } from '../actor-kind.ts';
import type { RunContext, RunEvent } from './types.ts';

/** The rest of a run is in its row. */
export interface RunState extends ActorState, ActorMetadata {
  readonly context: RunContext;
  readonly runId: string;
  readonly startedAtMs: number;
}

export const runActor: ActorName<RunState, RunEvent> = { name: 'run' };
