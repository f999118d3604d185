import { afterAll, beforeAll, describe } from 'vitest';
import type { Shape } from '../../helpers/deployment-under-test.ts';
import { completionCases } from './completion-cases.ts';
import { conversationCases, streamedCases } from './conversation-cases.ts';
import { customerCases } from './customer-cases.ts';
import { eventWebhookCases } from './event-webhook-cases.ts';
import { metricCases } from './metric-cases.ts';
import { routineCases } from './routine-cases.ts';
import { runCases, runsWithoutGatewaysCases } from './run-cases.ts';
import { type SharedDeployment, startShared } from './shared-deployment.ts';
import { traceCases } from './trace-cases.ts';

type Suite = (shared: () => SharedDeployment) => void;

/** What holds on one shape of a deployment holds on the other. */
export function deploymentCases(shape: Shape): void {
  describe(`Switchyard ${shape.name}`, () => {
    let deployment: SharedDeployment;
    const shared = () => deployment;

    beforeAll(async () => {
      deployment = await startShared(shape);
    });

    afterAll(async () => {
      await deployment?.stop();
    });

    // They count what the whole deployment does, so nothing runs beside them.
    metricCases(shared);

    // They wait more than they compute, and each has sessions, runs and traces of its own.
    const suites: Suite[] = [conversationCases, streamedCases, traceCases, completionCases, eventWebhookCases, customerCases, routineCases];
    for (const suite of suites) {
      describe('beside the others', { concurrent: true }, () => {
        describe('in order', { concurrent: false }, () => suite(shared));
      });
    }
    runCases(shared, shape.isCluster);

    if (shape.isCluster) runsWithoutGatewaysCases(shared);
  });
}
