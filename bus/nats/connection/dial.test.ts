import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
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

it('the reason is that of the last attempt which the end of the budget has not cut short', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    // The first is told something; the others wait for an answer.
    if (connections === 1) socket.end("-ERR 'Maximum Connections Exceeded'\r\n");
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const dialling = dial({ servers: `nats://127.0.0.1:${port}`, user: null, password: null }, 'test', 1_500);

    const error = await dialling.catch((thrown: unknown) => thrown);
    expect(connections).toBeGreaterThan(1);
    expect(String((error as Error).cause)).not.toMatch(/time/i);
  } finally {
    server.close();
  }
});
