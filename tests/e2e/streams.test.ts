import { afterAll, beforeAll, describe } from 'vitest';
import { ROUTERS, shapes } from '../helpers/deployment-under-test.ts';
import { openScriptedProviders, type ScriptedDeployment, scriptedDeployment } from '../helpers/scripted-deployment.ts';
import { faultCases } from './streams/fault-cases.ts';

describe.each(shapes)('streams that never lie, with Switchyard $name', ({ name, start }) => {
  let deployment: ScriptedDeployment;

  beforeAll(async () => {
    const providers = await openScriptedProviders();
    deployment = scriptedDeployment(name, providers, await start(providers.settings, ROUTERS));
  });

  afterAll(async () => {
    await deployment.deployment.stop();
    await deployment.close();
  });

  faultCases(() => deployment);
});
