import { afterAll, beforeAll, expect, it } from 'vitest';
import { type NatsServer, startNatsServer } from '../../../scripts/servers/test-services.mjs';
import { dial } from './dial.ts';

let servers: NatsServer[];
beforeAll(async () => {
  servers = await Promise.all([startNatsServer(), startNatsServer()]);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
});

it('a connection that is lost goes to another server, though the one that it was at accepts connections', async () => {
  const connection = await dial({ servers: servers.map(({ url }) => url).join(','), user: null, password: null }, 'test', 8_000);
  try {
    const first = connection.getServer();
    for (const expected of [false, true]) {
      const statuses = connection.status();
      await connection.reconnect();
      for await (const { type } of statuses) if (type === 'reconnect') break;

      expect(connection.getServer() === first).toBe(expected);
    }
  } finally {
    await connection.close();
  }
});
