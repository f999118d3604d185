import type { World } from './environment.ts';
import { stoppingAtEvents } from './patched-copy.ts';
import { type Fault, underLoad } from './scenario.ts';
import { brokerEndsInBetween } from './scenarios/between-steps.ts';
import { interimOwnerKilled } from './scenarios/interim-owner.ts';
import { killGatewayWithOpenCalls } from './scenarios/open-calls.ts';
import { hostSleeps, hostSleepsOverCommit, noticesLost } from './scenarios/paused-hosts.ts';
import { brokerRestarts, cacheKilled, databaseRestarts, rollBackBroker } from './scenarios/stores.ts';
import { effectWorkerKilled, gatewaysKilled, hostKilled, hostsChange, othersLeave, routerWorkerKilled } from './scenarios/terminations.ts';
import { olderBesideNewer } from './scenarios/versions.ts';

/** What happens under one load. */
export interface Act {
  name: string;
  run(world: World): Promise<void>;
}

const openCalls: Act = {
  name: 'a gateway is killed with a hundred calls open, and every upstream of it is closed within 35 s',
  run: async (world) => {
    const checkClosed = await killGatewayWithOpenCalls(world);
    console.info(await checkClosed());
  },
};
const rollBack: Act = { name: 'the broker’s store is rolled back under owners that live', run: rollBackBroker };
const interim: Act = {
  name: 'the interim owner of a paused host’s partition is killed as that host wakes with its commit',
  run: async (world) => interimOwnerKilled(world, { folder: await stoppingAtEvents(), isFenced: true }),
};

/** Faults that belong together, in an order in which they cost little time. */
export function fixedActs(): Act[] {
  return [
    openCalls,
    actOf(hostKilled, noticesLost),
    actOf(gatewaysKilled, routerWorkerKilled, effectWorkerKilled),
    actOf(hostsChange, othersLeave),
    actOf(hostSleeps, hostSleepsOverCommit()),
    actOf(cacheKilled, databaseRestarts, brokerRestarts),
    rollBack,
    interim,
    actOf(olderBesideNewer),
    actOf(brokerEndsInBetween('SIGTERM'), brokerEndsInBetween('SIGKILL')),
  ];
}

const FAULTS_OF_AN_ACT = 3;

/** The same faults in another order and in other company. */
export function shuffledActs(random: () => number): Act[] {
  const faults = shuffled(
    [
      ...[hostKilled, noticesLost, gatewaysKilled, routerWorkerKilled, effectWorkerKilled, hostsChange, othersLeave, hostSleeps, hostSleepsOverCommit()],
      ...[cacheKilled, databaseRestarts, brokerRestarts, olderBesideNewer, brokerEndsInBetween('SIGTERM'), brokerEndsInBetween('SIGKILL')],
    ],
    random,
  );
  const acts = Array.from({ length: faults.length / FAULTS_OF_AN_ACT }, (_, act) =>
    actOf(...faults.slice(act * FAULTS_OF_AN_ACT, (act + 1) * FAULTS_OF_AN_ACT)),
  );
  return shuffled([...acts, openCalls, rollBack, interim], random);
}

function actOf(...faults: Fault[]): Act {
  return { name: faults.map(({ name }) => name).join('; '), run: (world) => underLoad(world, faults) };
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item);
}
