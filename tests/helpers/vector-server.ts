import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';

export interface VectorServer {
  port: number;
  database: PGlite;
  close(): Promise<void>;
}

const SSL_REQUEST = 80_877_103;
const HEADER_BYTES = 5;
/** Ends of what is one unit for the server: a simple query, and Sync of the extended protocol. */
const ENDS = new Set(['Q', 'S']);

/**
 * pgvector behind a port, for processes that speak PostgreSQL's protocol: the embedded engine with a password, without TLS. All connections are one session,
 * so transactions of several would mix, and settings of a connection are passed over.
 */
export async function openVectorServer(password: string): Promise<VectorServer> {
  const database = await PGlite.create({ extensions: { vector } });
  await database.exec('create extension vector');
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    serve(socket, database, password).catch(() => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    database,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await database.close();
    },
  };
}

async function serve(socket: Socket, database: PGlite, password: string): Promise<void> {
  let waiting = Buffer.alloc(0);
  let unit: Buffer[] = [];
  let state: 'new' | 'unknown' | 'open' = 'new';
  for await (const bytes of socket) {
    waiting = Buffer.concat([waiting, bytes]);
    for (;;) {
      // The first message has no letter.
      const lengthAt = state === 'new' ? 0 : 1;
      if (waiting.length < HEADER_BYTES) break;
      const end = lengthAt + waiting.readUInt32BE(lengthAt);
      if (waiting.length < end) break;
      const message = waiting.subarray(0, end);
      waiting = waiting.subarray(end);
      const letter = String.fromCharCode(message[0] ?? 0);
      if (state === 'new') {
        const isForTls = message.readUInt32BE(4) === SSL_REQUEST;
        socket.write(isForTls ? 'N' : reply('R', [0, 0, 0, 3]));
        if (!isForTls) state = 'unknown';
      } else if (state === 'unknown') {
        if (message.toString('utf8', HEADER_BYTES, end - 1) !== password)
          return void socket.end(reply('E', [...Buffer.from('SFATAL\0C28P01\0Mwrong password\0\0')]));
        state = 'open';
        socket.write(Buffer.concat([reply('R', [0, 0, 0, 0]), reply('Z', [...Buffer.from('I')])]));
      } else if (letter === 'X') {
        return void socket.end();
      } else {
        unit.push(message);
        if (!ENDS.has(letter)) continue;
        const whole = Buffer.concat(unit);
        unit = [];
        socket.write(await database.runExclusive(() => database.execProtocolRaw(whole)));
      }
    }
  }
}

function reply(letter: string, content: readonly number[]): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(4 + content.length);
  return Buffer.concat([Buffer.from(letter), length, Buffer.from(content)]);
}
