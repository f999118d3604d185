import { afterAll, beforeAll, describe } from 'vitest';
import { ROUTERS, shapes } from '../helpers/deployment-under-test.ts';
import { openScriptedProviders, type ScriptedDeployment, scriptedDeployment } from '../helpers/scripted-deployment.ts';
import { leavingCases } from './streams/leaving-cases.ts';

describe.each(shapes)('clients that leave, with Switchyard $name', ({ name, start }) => {
  let deployment: ScriptedDeployment;

  beforeAll(async () => {
    const providers = await openScriptedProviders();
    deployment = scriptedDeployment(name, providers, await start(providers.settings, ROUTERS));
  });

  afterAll(async () => {
    await deployment.deployment.stop();
    await deployment.close();
  });

  leavingCases(() => deployment);
});
