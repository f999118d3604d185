import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { Cluster } from '../../helpers/start-cluster.ts';
import type { Place } from './credentials.ts';

/** Of the broker: reads every subject, and may publish nothing. */
const AUDITOR = { user: 'auditor', pass: 'not-of-a-service' };

export interface Watched {
  place: Place;
  close(): Promise<void>;
}

/** The configuration with a user that reads all. */
export function withAuditor(natsConfig: string): string {
  const user = `    { user: "${AUDITOR.user}", password: "${AUDITOR.pass}", permissions: { publish: { deny: [">"] }, subscribe: { allow: [">"] } } }`;
  return natsConfig.replace('  users: [\n', `  users: [\n${user}\n`);
}

/** Every message from now on: core subjects, and publishes to streams. */
export async function watchBus(servers: string): Promise<Watched> {
  const connection = await connect({ servers, ...AUDITOR });
  const place: Place = { name: 'a message of the bus', pieces: [] };
  connection.subscribe('>', {
    callback: (_, message) => {
      const headers = [...(message.headers ?? [])].map(String).join();
      place.pieces.push(`${message.subject} ${headers} ${Buffer.from(message.data).toString('latin1')}`);
    },
  });
  await connection.flush();
  return { place, close: () => connection.close() };
}

/** Every command from now on, but for the arguments of AUTH, which the server leaves out. */
export async function watchRedis(url: string): Promise<Watched> {
  const connection = new Redis(url);
  const monitor = await connection.monitor();
  const place: Place = { name: 'Redis', pieces: [] };
  monitor.on('monitor', (_time: string, args: string[]) => void place.pieces.push(args.join(' ')));
  return {
    place,
    close: async () => {
      monitor.disconnect();
      connection.disconnect();
    },
  };
}

/** All rows of all tables, as text. */
export async function rowsOf(url: string): Promise<Place> {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  try {
    const { rows: tables } = await pool.query<{ name: string }>(
      `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
    );
    const pieces: string[] = [];
    for (const { name } of tables) {
      const { rows } = await pool.query<{ row: string }>(`select t::text as row from ${name} t`);
      pieces.push(...rows.map(({ row }) => `${name}: ${row}`));
    }
    return { name: 'a row of PostgreSQL', pieces };
  } finally {
    await pool.end();
  }
}

/** What the broker has stored of its streams, those of before the audit included. */
export function filesOf(folder: string): Place {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path));
  const pieces = paths.filter((path) => statSync(path).isFile()).map((path) => `${path} ${readFileSync(path, 'latin1')}`);
  return { name: 'a file of the broker', pieces };
}

export async function metricsOf({ processes }: Cluster): Promise<Place> {
  const running = processes.filter((one) => !one.hasExited());
  const pieces = await Promise.all(running.map(async ({ managementUrl }) => (await fetch(`${managementUrl}/metrics`)).text()));
  return { name: 'a metric', pieces };
}
