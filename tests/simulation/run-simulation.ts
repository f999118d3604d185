import { toolWork } from '../../bus/messages/tool.ts';
import type { Dispatch } from './model-broker.ts';
import type { Row } from './model-rows.ts';
import { checkRules } from './rules.ts';
import { EPOCH_MS, type Parked } from './scheduler.ts';
import { useSimulatedTime } from './simulated-globals.ts';
import { Simulation, type SimulationOptions } from './simulation.ts';
import { MOST_SKEW_MS } from './watch.ts';

/** Steps of the part of a schedule with faults; the part without takes as many as it needs. */
const FEWEST_WILD_STEPS = 40;
const MORE_WILD_STEPS = 70;
/** Further ones where turns make many calls. */
const MORE_WITH_ENGINE = 70;
/** Percentage of calls that fail. */
const FAULT_PERCENT = 8;
const FAULT_PERCENT_OF_COMMITS = 24;
/** Steps, where the broker is a cluster. */
const CLUSTER_FAULT_ONE_IN = 20;
const MAX_HOSTS = 3;
/** Longer than the deadlines of turns and tool calls. */
const HOSTLESS_MS = 130_000;
const MOST_HOSTLESS_STEPS = 40;
const MAX_WORKERS = 2;
/** Of deliveries of a run’s tool call to a worker. */
const CANCELLED_ONE_IN = 5;
/** What has not ended within this is a violation: the longest waits are the deadlines of a run and of a lost delivery. */
const MOST_QUIET_MS = 15 * 60_000;
const MOST_QUIET_STEPS = 20_000;

export interface Outcome {
  seed: number;
  violations: readonly string[];
  steps: number;
  trace: readonly string[];
  traceHash: string;
  counts: Record<string, number>;
  /** All rows at the end, by table. */
  rows: Record<string, Row[]>;
}

/** One schedule: a part with faults, a part without in which everything ends, and the check of the rules. */
export async function runSimulation(options: SimulationOptions): Promise<Outcome> {
  const simulation = new Simulation(options);
  const { scheduler, watch, counts } = simulation;
  const restore = useSimulatedTime(scheduler, { hasEmbeddedServer: options.shadow !== undefined });
  try {
    await simulation.lay();
    await beWild(simulation);
    const left = await comeToRest(simulation);
    if (left.length > 0) watch.breach('silence', `what never came to its end: ${left.slice(0, 6).join(', ')}`);
    else checkRules(simulation);
  } catch (error) {
    watch.breach('fault', error instanceof Error ? (error.stack ?? error.message) : String(error));
  } finally {
    restore();
  }
  const { steps, trace, traceHash, nowMs } = scheduler;
  const rows = simulation.model.tables.dump();
  // A worker that settles no call breaks no rule: everything ends at its deadline.
  const replies = (rows['events'] ?? []).filter((row) => row['kind'] === 'assistant_message').length;
  const succeeded = (rows['runs'] ?? []).filter((row) => row['state'] === 'succeeded').length;
  const passed = {
    ...watch.counts,
    ...watch.logs.counts,
    ...watch.takeOvers.counts,
    ...simulation.cluster?.counts,
    ...counts,
    replies,
    succeeded,
    seconds: (nowMs - EPOCH_MS) / 1_000,
  };
  return { seed: options.seed, violations: watch.violations, steps, trace, traceHash, counts: passed, rows };
}

async function beWild(simulation: Simulation): Promise<void> {
  const { scheduler, gateway } = simulation;
  const { chance } = scheduler;
  await simulation.startHost();
  await simulation.startWorker();
  await scheduler.step(processOf(simulation), 'gateway opens', () => gateway.open());
  // Most schedules begin with running hosts.
  if (!chance.oneIn(4)) await drain(simulation, scheduler.steps + FEWEST_WILD_STEPS);
  const steps = scheduler.steps + FEWEST_WILD_STEPS + chance.below(MORE_WILD_STEPS) + (gateway.hasEngine ? MORE_WITH_ENGINE : 0);
  // Some schedules have more faults than others, and some have more of one kind.
  const stepsPerFault = chance.pick([10, 20, 40]);
  while (scheduler.steps < steps) {
    if (chance.oneIn(9)) await scheduler.step(processOf(simulation), 'gateway acts', () => gateway.sendRequest());
    if (chance.oneIn(stepsPerFault)) await injectFault(simulation);
    else if (chance.oneIn(15)) await startMissing(simulation);
    else if (simulation.cluster !== null && chance.oneIn(CLUSTER_FAULT_ONE_IN)) await injectClusterFault(simulation);
    await goOn(simulation);
  }
}

function processOf({ scheduler }: Simulation) {
  const [, gateway] = scheduler.processes;
  if (gateway === undefined) throw new TypeError('there is no gateway');
  return gateway;
}

/** Executes one step of what is in flight, with or without a fault. Time advances when nothing else can, and now and then before that. */
async function goOn(simulation: Simulation): Promise<void> {
  const { scheduler, broker, counts } = simulation;
  const { chance } = scheduler;
  const [op, inbox, dispatches] = [scheduler.nextOp(), scheduler.nextInbox(), broker.dispatches()];
  const ways: [weight: number, go: () => Promise<void>][] = [];
  if (op !== null) ways.push([56, () => resume(simulation, op)]);
  if (inbox !== null) {
    // Feeds lose nothing: what they can't deliver breaks them.
    const isLost = inbox.label.includes(' receives ') && chance.oneIn(6);
    if (isLost) counts.noticesLost += 1;
    ways.push([24, () => scheduler.deliver(inbox, { isLost })]);
  }
  if (dispatches.length > 0) ways.push([12, () => hand(simulation, chance.pick(dispatches))]);
  const ringing = scheduler.ringing();
  // Mostly the earliest timer; those of a lagging process fire late.
  const next = chance.oneIn(5) && ringing.length > 0 ? chance.pick(ringing) : ringing[0];
  if (next !== undefined) ways.push([8, () => scheduler.ring(next)]);
  let index = chance.below(ways.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, go] of ways) {
    if (index < weight) return go();
    index -= weight;
  }
}

/** Delivers an item. Some runs are cancelled just when a worker gets one of their tool calls: either claims it first. */
async function hand(simulation: Simulation, dispatch: Dispatch): Promise<void> {
  const { scheduler, broker, gateway } = simulation;
  const { item, consumer } = dispatch;
  await scheduler.step(consumer.process, `${consumer.process.id} takes ${item.kind}`, () => broker.hand(dispatch));
  const run = item.kind === 'tool' ? gateway.runs.find(({ id }) => isCallOf(id, item.body)) : undefined;
  if (run !== undefined && scheduler.chance.oneIn(CANCELLED_ONE_IN))
    await scheduler.step(processOf(simulation), 'gateway cancels a run', () => gateway.cancel(run));
}

function isCallOf(runId: string, body: string): boolean {
  const { type, actorId } = toolWork.parse(JSON.parse(body));
  return type === 'call' && actorId === runId;
}

/** A call succeeds; or it is executed and answered late, or never; or it is lost or delayed before it is executed. */
async function resume({ scheduler }: Simulation, op: Parked): Promise<void> {
  const { chance } = scheduler;
  // Commits fail more often, since the fence depends on them.
  const faultPercent = op.label.endsWith(' commits.commit') ? FAULT_PERCENT_OF_COMMITS : FAULT_PERCENT;
  const fate = chance.below(100);
  if (fate >= faultPercent) return scheduler.runToEnd(op);
  if (fate % 2 === 0) await scheduler.carryOut(op);
  if (fate % 4 >= 1) await scheduler.lose(op, { staysInFlight: chance.oneIn(2) });
}

/** Injects a fault into one process. */
async function injectFault(simulation: Simulation): Promise<void> {
  const { scheduler, hosts, workers } = simulation;
  const { chance } = scheduler;
  const what = chance.below(100);
  if (what < 20) {
    if (hosts.length < MAX_HOSTS) await simulation.startHost({ mayRepeatId: true });
  } else if (what < 32) {
    if (hosts.length > 0) simulation.killHost(chance.pick(hosts));
  } else if (what < 42) {
    if (hosts.length > 0) simulation.pause(chance.pick(hosts).process);
  } else if (what < 52) {
    const paused = scheduler.processes.filter(({ state }) => state === 'paused');
    if (paused.length > 0) simulation.wake(chance.pick(paused));
  } else if (what < 56) {
    if (hosts.length > 0) await simulation.stopHost(chance.pick(hosts));
  } else if (what < 60) {
    if (hosts.length > 0) simulation.cutOff(chance.pick(hosts));
  } else if (what < 62) {
    if (hosts.length > 0) simulation.reconnect(chance.pick(hosts));
  } else if (what < 68) {
    if (workers.length < MAX_WORKERS) await simulation.startWorker();
  } else if (what < 78) {
    if (workers.length > 0) simulation.killWorker(chance.pick(workers));
  } else if (what < 83) {
    if (workers.length > 0) simulation.pause(chance.pick(workers));
  } else if (what < 86) await beHostless(simulation);
  else injectSharedFault(simulation);
}

/** No host runs for longer than most deadlines. Workers store the results of what they have before these are over. */
async function beHostless(simulation: Simulation): Promise<void> {
  const { scheduler } = simulation;
  simulation.loseHosts();
  await drain(simulation, scheduler.steps + MOST_HOSTLESS_STEPS);
  scheduler.note(`${HOSTLESS_MS} ms pass without a host`);
  scheduler.nowMs += HOSTLESS_MS;
  await simulation.startHost({ mayRepeatId: true });
}

/** Starts a process where a role has none, since nothing would go on. */
async function startMissing(simulation: Simulation): Promise<void> {
  const { hosts, workers, scheduler } = simulation;
  const [host] = hosts;
  if (host === undefined) return simulation.startHost({ mayRepeatId: true });
  if (hosts.every(({ process }) => process.state === 'paused')) {
    return hosts.length < MAX_HOSTS && scheduler.chance.oneIn(2) ? simulation.startHost() : simulation.wake(host.process);
  }
  const [worker] = workers;
  if (worker === undefined) return simulation.startWorker();
  if (workers.every(({ state }) => state === 'paused')) simulation.wake(worker);
}

/** Injects a fault that concerns all processes: of time, or of the broker. */
function injectSharedFault(simulation: Simulation): void {
  const { scheduler, hosts } = simulation;
  const { chance } = scheduler;
  const what = chance.below(simulation.cluster === null ? 17 : 23);
  if (what < 6) {
    const jumpMs = chance.pick([2_000, 10_000, 30_000, 70_000]);
    scheduler.note(`${jumpMs} ms pass unseen`);
    scheduler.nowMs += jumpMs;
  } else if (what < 9) {
    if (hosts.length > 0) chance.pick(hosts).process.skewMs = chance.below(2 * MOST_SKEW_MS) - MOST_SKEW_MS;
  } else if (what < 11) simulation.loseLeader();
  else if (what < 13) simulation.restartBroker();
  else if (what < 17) simulation.loseStore();
  else if (what < 20) simulation.loseLeader();
  else simulation.slowBroker();
}

/** Injects a fault into the servers of the broker, and a request that is published while it lasts: few others are in flight. */
async function injectClusterFault(simulation: Simulation): Promise<void> {
  const { scheduler, gateway } = simulation;
  if (scheduler.chance.oneIn(4)) simulation.slowBroker();
  else simulation.loseLeader();
  await scheduler.step(processOf(simulation), 'gateway acts', () => gateway.sendRequest());
}

/** Without further faults: executes all that is in flight, then advances time. @returns what is left over */
async function comeToRest(simulation: Simulation): Promise<string[]> {
  const { scheduler, environment, gateway } = simulation;
  scheduler.note('rest');
  environment.isFaultFree = true;
  simulation.cluster?.recover();
  for (const process of [...scheduler.processes]) simulation.wake(process);
  for (const host of simulation.hosts) simulation.reconnect(host);
  if (simulation.workers.length === 0) await simulation.startWorker();
  await scheduler.step(processOf(simulation), 'gateway finishes', () => gateway.finish());
  let conflicts: string[] = [];
  const restsSinceMs = scheduler.nowMs;
  const untilMs = restsSinceMs + MOST_QUIET_MS;
  const untilSteps = scheduler.steps + MOST_QUIET_STEPS;
  while (scheduler.nowMs < untilMs && scheduler.steps < untilSteps) {
    // A host whose start failed is restarted, as by a process supervisor.
    if (simulation.hosts.every(({ isLeaving }) => isLeaving)) await simulation.startHost();
    await drain(simulation, untilSteps);
    simulation.watch.checkSilence(restsSinceMs);
    if (simulation.outstanding().length === 0) {
      simulation.askOwners();
      await drain(simulation, untilSteps);
      // A host that has lost a partition may need a moment to notice, but no longer than that.
      conflicts = simulation.conflicts();
      if (conflicts.length + simulation.outstanding().length === 0) return [];
    }
    const [next] = scheduler.ringing();
    if (next === undefined) return [`nothing that could go on: ${simulation.outstanding().join(', ')}`];
    await scheduler.ring(next);
  }
  return [...simulation.outstanding(), ...conflicts];
}

/** Executes what is in flight, in any order, until nothing is or the steps are used up. */
async function drain(simulation: Simulation, untilSteps: number): Promise<void> {
  const { scheduler, broker } = simulation;
  while (scheduler.steps < untilSteps) {
    const ways: (() => Promise<void>)[] = [];
    const op = scheduler.nextOp() ?? scheduler.oldestOp();
    if (op !== null) ways.push(() => scheduler.runToEnd(op));
    const inbox = scheduler.nextInbox();
    if (inbox !== null) ways.push(() => scheduler.deliver(inbox));
    const [dispatch] = broker.dispatches();
    if (dispatch !== undefined) ways.push(() => hand(simulation, dispatch));
    if (ways.length === 0) return;
    await scheduler.chance.pick(ways)();
  }
}
