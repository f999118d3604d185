import type { Environment } from './environment.ts';
import { killedAfterFirstMessage } from './patched-copy.ts';
import { type Fault, underLoad } from './scenario.ts';
import { brokerEndsInBetween } from './scenarios/between-steps.ts';
import { interimOwnerKilled } from './scenarios/interim-owner.ts';
import { killGatewayWithOpenCalls } from './scenarios/open-calls.ts';
import { pagesTalk } from './scenarios/pages.ts';
import { hostPaused, hostPausedAtCommit, noticesLost } from './scenarios/paused-hosts.ts';
import { brokerRestarts, cacheKilled, databaseRestarts, rollBackBroker } from './scenarios/stores.ts';
import { agentServerKilled, effectWorkerKilled, gatewaysKilled, hostKilled, hostsChange, othersLeave, routerWorkerKilled } from './scenarios/terminations.ts';
import { olderBesideNewer } from './scenarios/versions.ts';

/** Faults under one load. */
export interface FaultPlan {
  name: string;
  run(environment: Environment): Promise<void>;
}

const openCalls: FaultPlan = {
  name: 'a gateway is killed with a hundred calls open, and every upstream of it is closed',
  run: async (environment) => {
    const checkClosed = await killGatewayWithOpenCalls(environment);
    console.info(await checkClosed());
  },
};
const rollBack: FaultPlan = { name: 'the broker’s store is rolled back under running owners', run: rollBackBroker };
const interim: FaultPlan = {
  name: 'the interim owner of a paused host’s partition is killed as that host continues with its commit, and that host behind it',
  run: async (environment) => interimOwnerKilled(environment, await killedAfterFirstMessage()),
};

const pages: FaultPlan = {
  name: 'DESIGN 9: twenty pages that talk show every event once, while gateways and hosts are killed',
  run: pagesTalk,
};

/** Related faults, in an order that takes little time. */
export function fixedFaultPlans(): FaultPlan[] {
  return [
    openCalls,
    faultPlanOf(hostKilled, agentServerKilled, noticesLost),
    faultPlanOf(gatewaysKilled, routerWorkerKilled, effectWorkerKilled),
    faultPlanOf(hostsChange, othersLeave),
    faultPlanOf(hostPaused, hostPausedAtCommit()),
    faultPlanOf(cacheKilled, databaseRestarts, brokerRestarts),
    rollBack,
    interim,
    faultPlanOf(olderBesideNewer),
    faultPlanOf(brokerEndsInBetween('SIGTERM'), brokerEndsInBetween('SIGKILL')),
    pages,
  ];
}

const FAULTS_PER_PLAN = 4;

/** The same faults, reordered and regrouped. */
export function shuffledFaultPlans(random: () => number): FaultPlan[] {
  const faults = shuffled(
    [
      ...[
        hostKilled,
        agentServerKilled,
        noticesLost,
        gatewaysKilled,
        routerWorkerKilled,
        effectWorkerKilled,
        hostsChange,
        othersLeave,
        hostPaused,
        hostPausedAtCommit(),
      ],
      ...[cacheKilled, databaseRestarts, brokerRestarts, olderBesideNewer, brokerEndsInBetween('SIGTERM'), brokerEndsInBetween('SIGKILL')],
    ],
    random,
  );
  const plans = Array.from({ length: faults.length / FAULTS_PER_PLAN }, (_, plan) =>
    faultPlanOf(...faults.slice(plan * FAULTS_PER_PLAN, (plan + 1) * FAULTS_PER_PLAN)),
  );
  return shuffled([...plans, openCalls, rollBack, interim, pages], random);
}

function faultPlanOf(...faults: Fault[]): FaultPlan {
  return { name: faults.map(({ name }) => name).join('; '), run: (environment) => underLoad(environment, faults) };
}

function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item);
}
