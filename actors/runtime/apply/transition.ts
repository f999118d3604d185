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
 * XState's pure `transition()` for machines that start, send and await nothing. XState's own creates an actor per call and starts it without an
 * input, which raises and discards an error in machines that need one. One shared actor does: nothing is ever sent to it.
 */
export function transition<Machine extends AnyStateMachine>(machine: Machine, snapshot: SnapshotFrom<Machine>, event: EventFromLogic<Machine>): Step<Machine> {
  const actions: ExecutableActionsFrom<Machine>[] = [];
  return [machine.transition(snapshot, event, scopeFor(actions)) as SnapshotFrom<Machine>, actions];
}

export function initialTransition<Machine extends AnyStateMachine>(machine: Machine, input?: InputFrom<Machine>): Step<Machine> {
  const actions: ExecutableActionsFrom<Machine>[] = [];
  return [machine.getInitialSnapshot(scopeFor(actions), input) as SnapshotFrom<Machine>, actions];
}

const self = createActor(createMachine({}));
const ignore = () => {};

/** Collects the actions instead of executing them. */
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
