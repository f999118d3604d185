import {
  type AnyActorScope,
  type AnyStateMachine,
  createActor,
  createMachine,
  type EventFromLogic,
  type ExecutableActionsFrom,
  type InputFrom,
  type SnapshotFrom,
} from 'xstate';

type Step<Machine extends AnyStateMachine> = [next: SnapshotFrom<Machine>, actions: ExecutableActionsFrom<Machine>[]];

/**
 * XState's pure `transition()`, for machines that are data: they start nothing, send nothing and wait for nothing. Its own makes a whole
 * actor for each call, and begins that one without an input, which of a machine that needs one is an error, made and thrown away. One
 * actor for all of them does as well, since nobody ever asks it anything.
 */
export function transition<Machine extends AnyStateMachine>(machine: Machine, snapshot: SnapshotFrom<Machine>, event: EventFromLogic<Machine>): Step<Machine> {
  const actions: ExecutableActionsFrom<Machine>[] = [];
  return [machine.transition(snapshot, event, scopeFor(actions)) as SnapshotFrom<Machine>, actions];
}

/** XState's pure `initialTransition()`, for the same machines. */
export function initialTransition<Machine extends AnyStateMachine>(machine: Machine, input?: InputFrom<Machine>): Step<Machine> {
  const actions: ExecutableActionsFrom<Machine>[] = [];
  return [machine.getInitialSnapshot(scopeFor(actions), input) as SnapshotFrom<Machine>, actions];
}

const self = createActor(createMachine({}));
const ignore = () => {};

/** Where a transition is made: what would be done is collected, and nothing is done. */
function scopeFor<Action>(actions: Action[]): AnyActorScope {
  return {
    self,
    system: self.system,
    id: '',
    sessionId: '',
    logger: ignore,
    defer: ignore,
    emit: ignore,
    stopChild: ignore,
    actionExecutor: (action) => void actions.push(action as Action),
  };
}
