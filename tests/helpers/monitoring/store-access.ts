import { connect } from '@nats-io/transport-node';
import pg from 'pg';
import type { Cluster } from '../start-cluster.ts';

/** As a user that may send any message. @param times how often */
export async function publish(cluster: Cluster, subject: string, body: string, times = 1): Promise<void> {
  const { NATS_PASSWORD: pass = '' } = cluster.environmentOf('operator');
  const connection = await connect({ servers: cluster.nats.url, user: 'operator', pass, inboxPrefix: '_INBOX.operator' });
  for (let time = 0; time < times; time += 1) connection.publish(subject, body);
  await connection.flush();
  await connection.close();
}

/** Runs one statement, on a connection of its own. */
export async function query(cluster: Cluster, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: cluster.postgres.url });
  await client.connect();
  await client.query(text).finally(() => client.end());
}

/** Every statement that uses the table waits, or each that writes to it. @returns releases it */
export async function lockTable(cluster: Cluster, table: string, { against = 'all' }: { against?: 'all' | 'writes' } = {}): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: cluster.postgres.url });
  await client.connect();
  await client.query('begin');
  await client.query(`lock table ${table} in ${against === 'all' ? 'access exclusive' : 'exclusive'} mode`);
  return () => client.end();
}
