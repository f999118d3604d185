import { afterAll, beforeAll, describe } from 'vitest';
import { withCallSlots } from '../chaos/patched-copy.ts';
import { ROUTERS, shapes } from '../helpers/deployment-under-test.ts';
import { LONGER_THAN_A_TEST_MS, openScriptedProviders, type ScriptedDeployment, scriptedDeployment } from '../helpers/scripted-deployment.ts';
import { leavingCases, WORKER_SLOTS } from './streams/leaving-cases.ts';

describe.each(shapes)('clients that leave, with Switchyard $name', ({ name, isCluster, start }) => {
  let deployment: ScriptedDeployment;

  beforeAll(async () => {
    const providers = await openScriptedProviders({ silenceMs: LONGER_THAN_A_TEST_MS });
    const programs = isCluster ? undefined : await withCallSlots(WORKER_SLOTS);
    deployment = scriptedDeployment(name, providers, await start(providers.settings, ROUTERS, programs));
  });

  afterAll(async () => {
    await deployment.deployment.stop();
    await deployment.close();
  });

  leavingCases(() => deployment);
});
