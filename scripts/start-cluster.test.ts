import { expect, it } from 'vitest';
import { busUsers } from '../bus/nats/permissions.ts';
import { natsServerConfig, passwordVariableOf } from '../bus/nats/server-config.ts';
import { startCluster } from './start-cluster.mjs';

it.each(busUsers)('starts nothing when the broker has no user %s', async (user) => {
  const natsConfig = natsServerConfig().replaceAll(`$${passwordVariableOf(user)}`, '"none"');

  await expect(startCluster({ counts: {}, environment: {}, natsConfig })).rejects.toThrow(
    `The configuration of NATS has no user with the password ${passwordVariableOf(user)}.`,
  );
});
