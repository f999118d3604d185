import { EPOCH_MS, type Parked, type Process } from '../scheduler.ts';
import { useSimulatedTime } from '../simulated-globals.ts';
import { checkRouterRules } from './router-rules.ts';
import { RouterSimulation, type RouterSimulationOptions } from './router-simulation.ts';

/** Steps of the part of a schedule with faults; the part without takes as many as it needs. */
const FEWEST_WILD_STEPS = 60;
const MORE_WILD_STEPS = 100;
/** Percentage of requests to stores and providers that fail. */
const FAULT_PERCENT = 8;
const MAX_GATEWAYS = 2;
const MAX_WORKERS = 3;
const CALLS_PER_BURST = 6;
/** What has not ended within this is a violation: the longest wait is the end of a reservation. */
const MOST_QUIET_MS = 5 * 60_000;
const MOST_QUIET_STEPS = 20_000;

export interface RouterOutcome {
  seed: number;
  violations: readonly string[];
  steps: number;
  trace: readonly string[];
  traceHash: string;
  counts: Record<string, number>;
}

/** One schedule of the router: a part with faults, a part without in which everything ends, and the check of the rules. */
export async function runRouterSimulation(options: RouterSimulationOptions): Promise<RouterOutcome> {
  const simulation = new RouterSimulation(options);
  const { scheduler, watch } = simulation;
  const restore = useSimulatedTime(scheduler);
  const { stackTraceLimit } = Error;
  // Many errors are made, and each trace costs as much as a step.
  if (options.hasTraces !== true) Error.stackTraceLimit = 0;
  try {
    await beWild(simulation);
    const left = await comeToRest(simulation);
    if (left.length > 0) watch.breach('silence', `what never came to its end: ${left.slice(0, 6).join(', ')}`);
    checkRouterRules(simulation);
  } catch (error) {
    watch.breach('fault', error instanceof Error ? (error.stack ?? error.message) : String(error));
  } finally {
    restore();
    Error.stackTraceLimit = stackTraceLimit;
  }
  const { steps, trace, traceHash } = scheduler;
  return { seed: options.seed, violations: watch.violations, steps, trace, traceHash, counts: countsOf(simulation) };
}

function countsOf({ counts, cluster, clients, actorCalls, providers, router, tables, watch, scheduler }: RouterSimulation): Record<string, number> {
  const withStatus = (status: number) => clients.filter((client) => client.status === status).length;
  const unbilled = clients.filter(({ callId }) => callId !== null && watch.wasTaken(callId) && !tables.ledger.has(callId)).length;
  const seconds = Math.round((scheduler.nowMs - EPOCH_MS) / 1_000) - 12 * 3_600;
  const calls = {
    clients: clients.length,
    actors: actorCalls.length,
    ok: withStatus(200),
    noCredit: withStatus(402),
    rateLimited: withStatus(429),
    unavailable: withStatus(503),
  };
  const lapsed = tables.lapsed.length;
  const resumedToEnd = clients.filter(({ isResumed, body }) => isResumed && body.includes('[DONE]')).length;
  return {
    ...counts,
    ...cluster.counts,
    ...calls,
    withFile: providers.withFile,
    lapsed,
    resumedToEnd,
    rows: tables.ledger.size,
    unbilled,
    redeliveries: router.usage.redeliveries,
    seconds,
  };
}

async function beWild(simulation: RouterSimulation): Promise<void> {
  const { scheduler } = simulation;
  const { chance } = scheduler;
  await simulation.startGateway();
  await simulation.startWorker();
  if (!chance.oneIn(3)) await simulation.startGateway();
  if (!chance.oneIn(3)) await simulation.startWorker();
  // Some begin with more requests than the key has room for.
  if (chance.oneIn(3)) for (let count = 0; count < CALLS_PER_BURST; count += 1) await simulation.ask();
  const steps = scheduler.steps + FEWEST_WILD_STEPS + chance.below(MORE_WILD_STEPS);
  const stepsPerFault = chance.pick([8, 15, 30]);
  while (scheduler.steps < steps) {
    if (chance.oneIn(14)) await simulation.ask();
    else if (chance.oneIn(30)) await simulation.askAsActor();
    else if (chance.oneIn(20)) await simulation.resume();
    else if (chance.oneIn(60) && simulation.clients.length > 0) await simulation.leave(chance.pick(simulation.clients));
    if (chance.oneIn(stepsPerFault)) await injectFault(simulation);
    else if (chance.oneIn(12)) await startMissing(simulation);
    await goOn(simulation);
  }
}

/** Executes one step of what is in flight, with or without a fault. Time advances when nothing else can, and now and then before that. */
async function goOn(simulation: RouterSimulation): Promise<void> {
  const { scheduler } = simulation;
  const { chance } = scheduler;
  const [op, inbox, dispatches, ringing] = [scheduler.nextOp(), scheduler.nextInbox(), dispatchesOf(simulation), scheduler.ringing()];
  const ways: [weight: number, go: () => Promise<void>][] = [];
  if (op !== null) ways.push([40, () => resume(simulation, op)]);
  if (inbox !== null) ways.push([40, () => scheduler.deliver(inbox, { isLost: mayBeLost(inbox.label) && chance.oneIn(8) })]);
  if (dispatches.length > 0) ways.push([14, () => chance.pick(dispatches)()]);
  // Mostly the earliest timer; those of a lagging process fire late.
  const next = chance.oneIn(5) && ringing.length > 0 ? chance.pick(ringing) : ringing[0];
  if (next !== undefined) ways.push([6, () => scheduler.ring(next)]);
  let index = chance.below(ways.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, go] of ways) {
    if (index < weight) return go();
    index -= weight;
  }
}

/** Notices, replies and frames on their way to a process; what a process has sent arrives. */
function mayBeLost(label: string): boolean {
  return label.includes(' receives ') || label.endsWith(' gets a frame');
}

function dispatchesOf({ scheduler, broker, router }: RouterSimulation): (() => Promise<void>)[] {
  const items = broker.dispatches().map((dispatch) => {
    const { process } = dispatch.consumer;
    return () => scheduler.step(process, `${process.id} takes ${dispatch.item.messageId}`, () => broker.hand(dispatch));
  });
  const batches = router.usage.dispatches().map((consumer) => {
    return () => scheduler.step(consumer.process, `${consumer.process.id} takes usage records`, () => router.usage.hand(consumer));
  });
  return [...items, ...batches];
}

/** A request succeeds; or it is executed and answered late, or never; or it is lost or delayed before it is executed. */
async function resume({ scheduler }: RouterSimulation, op: Parked): Promise<void> {
  const { chance } = scheduler;
  const fate = chance.below(100);
  if (fate >= FAULT_PERCENT) return scheduler.runToEnd(op);
  if (fate % 2 === 0) await scheduler.carryOut(op);
  if (fate % 4 >= 1) await scheduler.lose(op, { staysInFlight: chance.oneIn(2) });
}

async function injectFault(simulation: RouterSimulation): Promise<void> {
  const { scheduler, gateways, workers } = simulation;
  const { chance } = scheduler;
  const processes = [...gateways.map(({ process }) => process), ...workers];
  const what = chance.below(100);
  if (what < 8) return gateways.length < MAX_GATEWAYS ? simulation.startGateway() : undefined;
  if (what < 18) return workers.length < MAX_WORKERS ? simulation.startWorker() : undefined;
  if (what < 28) return gateways.length > 0 ? simulation.kill(chance.pick(gateways).process) : undefined;
  if (what < 42) return workers.length > 0 ? simulation.kill(chance.pick(workers)) : undefined;
  if (what < 54) return processes.length > 0 ? simulation.pause(chance.pick(processes)) : undefined;
  if (what < 66) return wakeOne(simulation, processes);
  if (what < 72) return processes.length > 0 ? simulation.cutOff(chance.pick(processes)) : undefined;
  if (what < 78) return processes.length > 0 ? simulation.reconnect(chance.pick(processes)) : undefined;
  if (what < 79) return simulation.restartBroker();
  if (what < 81) return simulation.loseStore();
  if (what < 88) return simulation.loseLeader();
  if (what < 91) return simulation.slowBroker();
  if (what < 94) return simulation.loseDatabase(chance.pick([1_000, 5_000, 30_000]));
  if (what < 96) return void (await burst(simulation));
  const jumpMs = chance.pick([2_000, 7_000, 35_000, 100_000]);
  scheduler.note(`${jumpMs} ms pass unseen`);
  scheduler.nowMs += jumpMs;
}

async function burst(simulation: RouterSimulation): Promise<void> {
  for (let count = 0; count < CALLS_PER_BURST; count += 1) await simulation.ask();
}

function wakeOne(simulation: RouterSimulation, processes: readonly Process[]): void {
  const paused = processes.filter(({ state }) => state === 'paused');
  if (paused.length > 0) simulation.wake(simulation.scheduler.chance.pick(paused));
}

/** Starts a process where a kind has none, since nothing would go on. */
async function startMissing(simulation: RouterSimulation): Promise<void> {
  const { gateways, workers } = simulation;
  const [gateway] = gateways;
  if (gateway === undefined) await simulation.startGateway();
  else if (gateways.every(({ process }) => process.state === 'paused')) simulation.wake(gateway.process);
  const [worker] = workers;
  if (worker === undefined) await simulation.startWorker();
  else if (workers.every(({ state }) => state === 'paused')) simulation.wake(worker);
}

/** Without further faults: executes all that is in flight, then advances time. @returns what is left over */
async function comeToRest(simulation: RouterSimulation): Promise<string[]> {
  const { scheduler, gateways, workers } = simulation;
  scheduler.note('rest');
  simulation.providers.isFaultFree = true;
  simulation.isFaultFree = true;
  simulation.cluster.recover();
  simulation.recoverDatabase();
  for (const process of [...gateways.map((gateway) => gateway.process), ...workers]) {
    simulation.wake(process);
    simulation.reconnect(process);
  }
  if (workers.length === 0) await simulation.startWorker();
  const untilMs = scheduler.nowMs + MOST_QUIET_MS;
  const untilSteps = scheduler.steps + MOST_QUIET_STEPS;
  while (scheduler.nowMs < untilMs && scheduler.steps < untilSteps) {
    await drain(simulation, untilSteps);
    if (simulation.outstanding().length === 0) return [];
    const [next] = scheduler.ringing();
    if (next === undefined) break;
    await scheduler.ring(next);
  }
  return simulation.outstanding();
}

/** Executes what is in flight in turn, until nothing is or the steps are used up. */
async function drain(simulation: RouterSimulation, untilSteps: number): Promise<void> {
  const { scheduler } = simulation;
  while (scheduler.steps < untilSteps) {
    const inbox = scheduler.nextInbox();
    const op = scheduler.oldestOp();
    const [dispatch] = dispatchesOf(simulation);
    if (op !== null) await scheduler.runToEnd(op);
    else if (inbox !== null) await scheduler.deliver(inbox);
    else if (dispatch !== undefined) await dispatch();
    else return;
  }
}
