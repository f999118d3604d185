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
    // The first gets an answer; the others wait for one.
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

const PASSWORD = 'authorization { user: operator, password: right }';
const account = { user: 'operator', password: 'wrong' } as const;

it('a refusal is not hidden by a server that does not answer, whichever is dialled last', async () => {
  const silent = createServer((socket) => void socket.on('error', () => {})).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const refusing = await startNatsServer({ config: `${PASSWORD}\n` });
  const all = [`nats://127.0.0.1:${port}`, refusing.url].join(',');
  try {
    // In a random order: the library reports the error of the last one.
    const dialled = Array.from({ length: 16 }, () => dial({ servers: all, ...account }, 'test', 8_000).catch((error: unknown) => error));

    expect(new Set((await Promise.all(dialled)).map(String))).toEqual(
      new Set([
        `SwitchyardError: NATS at ${all.replace(',', ', ')} refused the user 'operator' (Authorization Violation): NATS_PASSWORD is not the password that the broker has for it, or the broker has no such user`,
      ]),
    );
  } finally {
    await refusing.close();
    silent.close();
  }
});

it('a refusal by one server is none while another one accepts', async () => {
  const refusing = await startNatsServer({ config: `${PASSWORD}\n` });
  try {
    const [accepting] = servers;
    const all = [refusing.url, accepting?.url].join(',');
    // In a random order.
    const connections = await Promise.all(Array.from({ length: 8 }, () => dial({ servers: all, ...account }, 'test', 8_000)));

    expect(new Set(connections.map((connection) => `nats://${connection.getServer()}`))).toEqual(new Set([accepting?.url]));
    for (const connection of connections) await connection.close();
  } finally {
    await refusing.close();
  }
});

it('a process that was too slow for the broker is not refused: it dials again', async () => {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => {});
    socket.write('INFO {"server_id":"one","version":"2.10.0","max_payload":1048576,"headers":true}\r\n');
    socket.end("-ERR 'Authentication Timeout'\r\n");
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const { port } = server.address() as AddressInfo;

    await expect(dial({ servers: `nats://127.0.0.1:${port}`, ...account }, 'test', 1_000)).rejects.toThrow(/could not be reached within 1 s/);
    expect(connections).toBeGreaterThan(1);
  } finally {
    server.close();
  }
});
