import { randomUUID } from 'node:crypto';
import pg from 'pg';

/** A test's own database on a shared server. */
export interface FreshDatabase {
  url: string;
  /** Runs one statement on the server as its superuser, outside of that database. */
  administer(text: string): Promise<void>;
  /** Terminates all of its connections. */
  drop(): Promise<void>;
}

/** @param serverUrl of any database of the server, as a user with the right to create others */
export async function freshDatabase(serverUrl: string): Promise<FreshDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`;
  const administer = (text: string) => runOnce(serverUrl, text);
  await administer(`create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return { url: url.href, administer, drop: () => administer(`drop database if exists ${name} with (force)`) };
}

async function runOnce(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
