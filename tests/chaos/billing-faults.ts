import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { ClusterProcess } from '../../scripts/servers/start-cluster.mjs';
import type { FailPoint } from '../../shared/fail-points.ts';
import { eventually } from '../helpers/eventually.ts';
import { sendCall } from './billed-call.ts';
import { checkBills } from './billing-audit.ts';
import type { BillingEnvironment } from './billing-environment.ts';
import type { BillingLoad } from './billing-load.ts';

type BilledRole = 'router-gateway' | 'router-worker' | 'router';
type StoreName = 'nats' | 'postgres' | 'redis';

/** What is killed while calls are billed. */
export interface BillingFault {
  name: string;
  /** How often it allows one call to be sent to the provider again: once for each worker that dies, and for each end of the broker. */
  askedAgain: number;
  /** Whether it may leave reservations of calls that came to nothing. They lapse. */
  leavesReservations: boolean;
  /** Whether calls that did not complete may have no row: those whose gateway and worker died together. Their reservations lapse. */
  leavesUnbilled?: true;
  /** Whether the retained frames are lost: what was shown of a call that broke off, and that no worker executes again, may cost nothing. */
  losesFrames?: boolean;
  /** Leaves the number of processes as it was. */
  inject(environment: BillingEnvironment, load: BillingLoad): Promise<void>;
}

/** Calls between two faults, so that all kinds are in flight. */
const UNDER_WAY = 40;
const SHORT_PAUSE_MS = 500;
const LONG_LIMIT_NANO = 1_000_000_000;
const TIMES = 2;
const TIMEOUT = { timeoutMs: 60_000 };

/** Where a process dies, in the order of a call. Those of the ledger belong to a batch of records. */
const pointsOf: Record<'router-gateway' | 'router-worker', readonly FailPoint[]> = {
  'router-gateway': ['call.reserved', 'call.sent', 'call.queued'],
  'router-worker': ['item.taken', 'file.read', 'call.recorded', 'item.done', 'item.acked', 'ledger.written'],
};
/** The pass at which a process dies or is stopped: calls of each kind have passed by then. */
const HIT = 4;

/** The points at which `billing.test.ts` kills processes. */
export const billedPoints: readonly FailPoint[] = Object.values(pointsOf).flat();

export const billingFaults: readonly BillingFault[] = [
  killed('router-gateway'),
  killed('router-worker'),
  bothKilled(),
  bothInOneProcessKilled(),
  allKilledInLongStreams(),
  storeKilled('nats'),
  storeKilled('postgres'),
  storeKilled('redis'),
  killedAt('router-gateway', pointsOf['router-gateway']),
  killedAt('router-worker', ['item.taken', 'file.read', 'call.recorded', 'item.done', 'item.acked']),
  killedAt('router-worker', ['ledger.written']),
  storeKilledBetween('nats'),
  storeKilledBetween('postgres'),
  storeKilledBetween('redis'),
];

function killed(role: BilledRole): BillingFault {
  return {
    name: `a ${role} is killed`,
    askedAgain: role === 'router-worker' ? TIMES : 0,
    leavesReservations: role === 'router-gateway',
    inject: (environment, load) =>
      repeatedly(environment, load, async () => {
        await environment.end(oneOf(environment, role), 'SIGKILL');
        await environment.add(role);
      }),
  };
}

/** A dispatched call is in no queue, and one that is shorter than two seconds has no interim record: nothing is left that could bill it. */
function bothKilled(): BillingFault {
  const roles: readonly BilledRole[] = ['router-gateway', 'router-worker'];
  return {
    name: 'a router-gateway and a router-worker are killed at once',
    askedAgain: TIMES,
    leavesReservations: true,
    leavesUnbilled: true,
    inject: (environment, load) =>
      repeatedly(environment, load, async () => {
        await Promise.all(roles.map((role) => environment.end(oneOf(environment, role), 'SIGKILL')));
        await Promise.all(roles.map((role) => environment.add(role)));
      }),
  };
}

/** As above, and its calls never went over the broker. It takes part in the load only here. */
function bothInOneProcessKilled(): BillingFault {
  return {
    name: 'a router-gateway and a router-worker in one process are killed',
    askedAgain: TIMES,
    leavesReservations: true,
    leavesUnbilled: true,
    inject: (environment, load) =>
      repeatedly(environment, load, async () => {
        const one = await environment.add('router');
        await load.more(UNDER_WAY);
        await environment.end(one, 'SIGKILL');
      }),
  };
}

/** Streams of seconds have interim records. */
function allKilledInLongStreams(): BillingFault {
  return {
    name: 'gateways and all workers are killed in the middle of long streams, which are billed by their interim records',
    askedAgain: TIMES,
    leavesReservations: true,
    leavesUnbilled: true,
    inject: async (environment) => {
      const { cluster, database } = environment;
      const keys = await Promise.all([LONG_LIMIT_NANO, null].map((limit) => environment.makeKey(limit)));
      const [gateways, urls] = [cluster.running('router-gateway'), [...cluster.routerUrls]];
      // The load goes on with these.
      for (const { role } of gateways) await environment.add(role as BilledRole);
      const nextRouterUrl = () => urls.pop() ?? environment.nextRouterUrl();
      const sent = keys.map((key) => sendCall({ ...environment, nextRouterUrl }, { key, script: 'long', isStream: true }));
      const interims = 'select 1 from interim_records where record->>$1 = any($2)';
      const ids = keys.map(({ id }) => id);
      await eventually(async () => (await database.query(interims, ['keyId', ids])).rows.length === keys.length, TIMEOUT);
      const workers = cluster.running('router-worker');
      await Promise.all([...gateways, ...workers].map((one) => environment.end(one, 'SIGKILL')));
      for (const { role } of workers) await environment.add(role as BilledRole);
      const outcomes = await Promise.all(sent);
      expect(outcomes.filter(({ end }) => end === 'completed')).toEqual([]);
      await checkBills(environment, outcomes, { keys, isUnderLoad: true });
    },
  };
}

function oneOf({ cluster, random }: BillingEnvironment, role: BilledRole): ClusterProcess {
  const running = cluster.running(role);
  const one = running[Math.floor(random() * running.length)];
  if (one === undefined) throw new Error(`there is no ${role} left`);
  return one;
}

function storeKilled(store: StoreName): BillingFault {
  return {
    name: `${store} is killed`,
    askedAgain: store === 'nats' ? TIMES : 0,
    leavesReservations: store !== 'redis',
    losesFrames: store === 'nats',
    inject: (environment, load) =>
      repeatedly(environment, load, async () => {
        await environment.cluster[store].kill();
        await delay(environment.random() * SHORT_PAUSE_MS);
        await environment.cluster[store].start();
      }),
  };
}

/** One process for each point, which dies there. */
function killedAt(role: BilledRole, points: readonly FailPoint[]): BillingFault {
  return {
    name: `a ${role} is killed at ${points.join(', ')}`,
    askedAgain: role === 'router-worker' ? points.length : 0,
    leavesReservations: role === 'router-gateway',
    inject: async (environment) => {
      const armed = await Promise.all(points.map((point) => arm(environment, role, `${point}:kill:${HIT}`)));
      for (const [index, one] of armed.entries()) {
        await eventually(() => one.hasExited(), TIMEOUT).catch((cause) => {
          throw new Error(`${points[index]} was not reached`, { cause });
        });
        expect(one.output()).toContain(`fail point ${points[index]}: SIGKILL`);
      }
    },
  };
}

/** A store ends while a process is stopped between each two steps that involve it. */
function storeKilledBetween(store: StoreName): BillingFault {
  const points: [BilledRole, FailPoint][] = [
    ['router-gateway', 'call.reserved'],
    ['router-gateway', 'call.sent'],
    ['router-worker', 'call.recorded'],
    ['router-worker', 'item.done'],
    ['router-worker', 'ledger.written'],
  ];
  return {
    name: `${store} is killed while processes are stopped at ${points.map(([, point]) => point).join(', ')}`,
    // A stopped process counts as dead after a while.
    askedAgain: points.length,
    leavesReservations: true,
    losesFrames: store === 'nats',
    inject: async (environment) => {
      const armed = await Promise.all(points.map(([role, point]) => arm(environment, role, `${point}:stop:${HIT}`)));
      try {
        await eventually(() => armed.every((one) => one.output().includes('SIGSTOP')), TIMEOUT);
        await environment.cluster[store].kill();
        await environment.cluster[store].start();
      } finally {
        for (const one of armed) one.signal('SIGCONT');
      }
      await Promise.all(armed.map((one) => environment.end(one, 'SIGTERM')));
    },
  };
}

async function repeatedly(environment: BillingEnvironment, load: BillingLoad, kill: () => Promise<void>): Promise<void> {
  for (let time = 0; time < TIMES; time += 1) {
    await load.more(UNDER_WAY);
    // A plain wait: the seed decides the moment of the fault.
    await delay(environment.random() * SHORT_PAUSE_MS);
    await kill();
  }
}

async function arm(environment: BillingEnvironment, role: BilledRole, failPoint: string): Promise<ClusterProcess> {
  const one = await environment.add(role, { FAIL_POINT: failPoint });
  environment.ended.add(one);
  return one;
}
