import { connect } from '@nats-io/transport-node';
import pg from 'pg';
import type { Cluster } from '../start-cluster.ts';

/** As a user that may send any message. */
export async function publish(cluster: Cluster, subject: string, body: string): Promise<void> {
  const { NATS_PASSWORD: pass = '' } = cluster.environmentOf('operator');
  const connection = await connect({ servers: cluster.nats.url, user: 'operator', pass, inboxPrefix: '_INBOX.operator' });
  connection.publish(subject, body);
  await connection.flush();
  await connection.close();
}

/** Runs one statement, on a connection of its own. */
export async function query(cluster: Cluster, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: cluster.postgres.url });
  await client.connect();
  await client.query(text).finally(() => client.end());
}

/** Every statement that uses the table waits. @returns releases it */
export async function lockTable(cluster: Cluster, table: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: cluster.postgres.url });
  await client.connect();
  await client.query('begin');
  await client.query(`lock table ${table} in access exclusive mode`);
  return () => client.end();
}
