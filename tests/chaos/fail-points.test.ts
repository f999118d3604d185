import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import type { ClusterProcess, Role } from '../../scripts/servers/start-cluster.mjs';
import { type FailPoint, failPoints } from '../../shared/fail-points.ts';
import { documentPoints } from '../helpers/document-points.ts';
import { eventually } from '../helpers/eventually.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { isQuiet } from '../helpers/session-logs.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { billedPoints } from './billing-faults.ts';
import { callRedeliveries } from './call-redeliveries.ts';
import { type FailPointEnvironment, type OneTool, openFailPointEnvironment } from './fail-point-environment.ts';
import { type Load, startLoad } from './fail-point-load.ts';
import { webhookPoints } from './webhook-load.ts';

/** A process with a fail point. */
interface Armed {
  role: Role;
  point: FailPoint;
  /** The pass of the point at which it dies; by default the first. */
  hit?: number;
  env?: Record<string, string>;
  /** It gets SIGTERM once it owns partitions. */
  leaves?: true;
}

interface Round {
  /** What the runs of the workload call meanwhile. */
  tool: OneTool;
  /** Started group by group, the members of a group in parallel. */
  groups: Armed[][];
}

const tools = { EFFECT_KINDS: 'tool' };
const deliveries = { EFFECT_KINDS: 'delivery' };

/** A tool list is fetched only by the first worker, so this one runs alone. */
const FIRST: Armed = { role: 'effect-worker', env: tools, point: 'tool-list.stored' };

/** Before BOOKING, so that no call of the other tool is redelivered to a worker of that round. */
const LOOKING: Round = {
  tool: 'look',
  groups: [
    [
      { role: 'effect-worker', env: tools, point: 'tool.answered' },
      { role: 'effect-worker', env: tools, point: 'item.reported' },
      { role: 'effect-worker', env: tools, point: 'item.acked' },
      { role: 'effect-worker', env: deliveries, point: 'item.reported' },
      { role: 'effect-worker', env: deliveries, point: 'item.acked' },
    ],
  ],
};

/** Meanwhile the leases of the workers of LOOKING expire: no item is leased to two dead workers in sequence. */
const TAKING_OVER: Round = {
  tool: 'look',
  groups: [
    [
      { role: 'actor-host', point: 'commit.sending' },
      { role: 'actor-host', point: 'commit.stored' },
      { role: 'actor-host', point: 'commit.announced' },
      { role: 'actor-host', point: 'outbox.rendered' },
      { role: 'actor-host', point: 'outbox.dispatched' },
      { role: 'actor-host', point: 'outbox.published' },
    ],
    [
      { role: 'actor-host', point: 'take-over.claimed' },
      { role: 'actor-host', point: 'take-over.effects-read' },
      { role: 'actor-host', point: 'take-over.timers-read' },
      { role: 'actor-host', point: 'take-over.loaded' },
    ],
  ],
};

const BOOKING: Round = {
  tool: 'book',
  groups: [
    [
      { role: 'router-worker', point: 'item.taken' },
      { role: 'router-worker', point: 'item.done' },
      { role: 'router-worker', point: 'call.recorded' },
      { role: 'router-worker', point: 'item.reported' },
      { role: 'router-worker', point: 'item.acked' },
      { role: 'effect-worker', env: tools, point: 'item.taken' },
      { role: 'effect-worker', env: tools, point: 'item.done' },
      { role: 'effect-worker', env: tools, point: 'tool.claimed' },
      { role: 'effect-worker', env: tools, point: 'tool.answered' },
      { role: 'effect-worker', env: deliveries, point: 'item.taken' },
      { role: 'effect-worker', env: deliveries, point: 'delivery.counted' },
      { role: 'effect-worker', env: deliveries, point: 'delivery.posted' },
      { role: 'effect-worker', env: deliveries, point: 'item.done' },
    ],
  ],
};

const LEAVING: Round = {
  tool: 'book',
  groups: [
    [
      { role: 'actor-host', point: 'partitions.let-go' },
      { role: 'actor-host', point: 'partitions.given-back' },
    ],
    [
      // Later than its first pass, so that it owns partitions.
      { role: 'actor-host', point: 'heartbeat.written', hit: 3 },
      { role: 'actor-host', point: 'leave.signed-off', leaves: true },
      { role: 'actor-host', point: 'leave.given-back', leaves: true },
    ],
  ],
};

const rounds = [LOOKING, TAKING_OVER, BOOKING, LEAVING];
const roundsOfToday = casesOfToday(rounds);
const armedIn = (some: readonly Round[]) => [FIRST, ...some.flatMap(({ groups }) => groups.flat())];

/** Until the load has made a process reach its point, or the last wait is over. */
const TIMEOUT = { timeoutMs: 90_000 };
const PULSE_MS = 700;
/** A process has 9 s to start, which a busy machine may exceed. */
const STARTING_AT_ONCE = 2;
const MAX_STARTS = 5;
const ALL_ROUNDS_MS = 400_000;

let environment: FailPointEnvironment;
let load: Load;

beforeAll(async () => {
  environment = await openFailPointEnvironment();
  load = startLoad(environment);
});

it('a process that is killed at any fail point loses nothing and does nothing twice', { timeout: ALL_ROUNDS_MS }, async () => {
  const startedAtMs = performance.now();
  expect(new Set([...armedIn(rounds).map(({ point }) => point), ...billedPoints, ...webhookPoints, ...documentPoints])).toEqual(
    new Set(Object.keys(failPoints)),
  );
  const all = armedIn(roundsOfToday);
  await (await arm(FIRST)).died;
  await environment.cluster.add('effect-worker');
  for (const round of roundsOfToday) {
    const before = { model: environment.model.asked, streams: load.streams, redelivered: await redelivered() };
    // On a busy machine what is in flight may leave no room for a stream of this round before all have died.
    await killAll(round, () => load.mostCallsSince(before.streams) > 0);
    if (round === BOOKING) continue;
    const repeated = { model: environment.model.repeats(before.model).extra, streams: load.mostCallsSince(before.streams) - 1 };
    // No router worker dies here, so nothing but a lost lease repeats a call.
    const lost = (await redelivered()) - before.redelivered;
    expect(Math.max(repeated.model, repeated.streams), JSON.stringify({ ...repeated, lost })).toBeLessThanOrEqual(lost);
  }
  const killedMs = performance.now() - startedAtMs;

  await load.answered();
  await eventually(() => isQuiet(environment.database, load.said), TIMEOUT);
  const checked = await load.check();
  // A call is repeated once for each worker that dies with it in flight, or runs on and loses its lease, and for no other reason.
  const workers = all.filter(({ role }) => role === 'router-worker').length;
  const { most, extra } = environment.model.repeats(0);
  expect(Math.max(most, load.mostCallsSince(0))).toBeLessThanOrEqual(1 + workers + (await redelivered()));
  // Each effect of the faults occurred at least once, so the assertions above are not vacuous.
  if (roundsOfToday.includes(BOOKING)) expect(checked.outcomesUnknown).toBeGreaterThan(0);
  if (roundsOfToday.includes(LOOKING)) expect(checked.lookedAgain).toBeGreaterThan(0);
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  console.info(
    `${all.length} kills at fail points in ${seconds(killedMs)}, all over after ${seconds(performance.now() - startedAtMs)}: ` +
      JSON.stringify({ ...checked, extraModelCalls: extra }),
  );
  await environment.close();
  const exits = await Promise.all(environment.cluster.processes.map(async ({ role, exited }) => ({ role, ...(await exited) })));
  expect(exits.filter(({ code, signal }) => code !== 0 && signal !== 'SIGKILL')).toEqual([]);
});

/** Starts the processes of a round, and adds load until all of them have died and `hasStreamed`. */
async function killAll({ tool, groups }: Round, hasStreamed: () => boolean): Promise<void> {
  const rest = new AbortController();
  const pulsing = pulse(tool, rest.signal);
  try {
    const dying: Promise<void>[] = [];
    for (const group of groups) {
      await inParallel(group, STARTING_AT_ONCE, async (armed) => {
        const { one, died } = await arm(armed);
        // The wait for all rejects with the failure; until then the promise is not awaited.
        died.catch(() => {});
        dying.push(died);
        if (one !== null) await hasSomethingToLose(armed, one);
      });
    }
    await Promise.all(dying);
    await eventually(hasStreamed, TIMEOUT);
  } finally {
    rest.abort();
    await pulsing;
  }
}

async function pulse(tool: OneTool, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    load.pulse(tool);
    await delay(PULSE_MS, undefined, { signal }).catch(() => {});
  }
}

interface Dying {
  /** Null when it died before it was ready. */
  one: ClusterProcess | null;
  /** @throws when it ends in another way, or does not end */
  died: Promise<void>;
}

async function arm({ role, point, hit = 1, env = {} }: Armed): Promise<Dying> {
  const last = `fail point ${point}: SIGKILL`;
  for (let tries = 1; ; tries += 1) {
    try {
      const one = await environment.cluster.add(role, { ...env, FAIL_POINT: `${point}:kill:${hit}` });
      return { one, died: diedAt(one, last) };
    } catch (error) {
      const words = error instanceof Error ? error.message : '';
      // It may well die while it starts: acquiring partitions is part of that.
      if (words.includes('ended with SIGKILL') && words.includes(last)) return { one: null, died: Promise.resolve() };
      // It exited by itself, before its point.
      if (!/can't start: .* has timed out/.test(words) || tries === MAX_STARTS) throw error;
    }
  }
}

async function diedAt(one: ClusterProcess, last: string): Promise<void> {
  await eventually(() => one.hasExited(), TIMEOUT).catch((cause) => {
    throw new Error(`${last} was not reached`, { cause });
  });
  expect(await one.exited).toEqual({ code: null, signal: 'SIGKILL' });
  expect(one.output()).toContain(last);
}

/** Waits until a host owns partitions; one that has to leave then gets SIGTERM. */
async function hasSomethingToLose({ role, leaves }: Armed, one: ClusterProcess): Promise<void> {
  if (role !== 'actor-host') return;
  await eventually(async () => one.hasExited() || (await partitionsOf(one)) > 0, TIMEOUT);
  if (leaves) one.signal('SIGTERM');
}

function redelivered(): Promise<number> {
  return callRedeliveries(environment.cluster.running('router-worker'));
}

async function partitionsOf({ managementUrl }: ClusterProcess): Promise<number> {
  const response = await fetch(`${managementUrl}/metrics`, { signal: AbortSignal.timeout(60_000) });
  return Number(/^switchyard_partitions_owned(?:\{[^}]*\})? (\d+)/m.exec(await response.text())?.[1] ?? 0);
}
