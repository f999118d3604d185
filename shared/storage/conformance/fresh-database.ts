import { randomUUID } from 'node:crypto';
import pg from 'pg';

/** A database of a test's own on a server that others use too. */
export interface FreshDatabase {
  url: string;
  /** Runs one statement on the server, outside of that database, as its superuser. */
  administer(text: string): Promise<void>;
  /** Ends whoever is still connected. */
  drop(): Promise<void>;
}

/** @param serverUrl of any database of the server, as a user who may create others */
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
