import { Client } from 'pg';
import { describe, expect, it } from 'vitest';
import { type Manifest, manifest as schema } from '../contracts/manifest/manifest.ts';
import { databaseUrl } from './database-url.ts';

function manifestWith(database: object | null): Manifest {
  return schema.parse({
    ...{ id: 'acme', name: 'Acme', version: '1' },
    agent_config: {
      runtime: { api_key: '${A}' },
      platform: { public_key: '${A}', secret_key: '${A}' },
      llms: { default: 'openai/gpt-5', api_key: '${A}' },
      context: { system_prompt: { id: 'acme', version: 1 }, language: 'match_user' },
      ...(database !== null && { database: { hostname: 'db.example', password: '${DATABASE_PASSWORD}', ...database } }),
    },
  });
}

const read = (database: object | null, environment: Record<string, string> = { DATABASE_PASSWORD: 'secret' }, given?: string) =>
  databaseUrl({ given, manifest: manifestWith(database), environment });

describe('the database', () => {
  it('is that of the manifest without DATABASE_URL, with its defaults', () => {
    expect(read({})).toEqual({ url: 'postgres://postgres:secret@db.example:5432/postgres?sslmode=require', warnings: [] });
  });

  it.each([
    [{ hostname: '[::1]', port: 6_543, user: 'a:b@c', dbname: 'one two', sslmode: 'verify-full' }, 'p@ss/w:rd?#%', ['::1', 6_543, 'a:b@c', 'one two']],
    [{ hostname: '10.0.0.1', dbname: 'größe' }, 'pässword', ['10.0.0.1', 5_432, 'postgres', 'größe']],
  ])('%j is what a client of PostgreSQL reads from the URL', (database, password, expected) => {
    const { url } = read(database, { DATABASE_PASSWORD: password });
    const client = new Client({ connectionString: url.replace(/\?sslmode.*$/, '') });

    expect([client.host, client.port, client.user, client.database, client.password]).toEqual([...expected, password]);
    expect(new URL(url).searchParams.get('sslmode')).toBe('sslmode' in database ? database.sslmode : 'require');
  });

  it('is that of DATABASE_URL when both are given, with a warning', () => {
    const { url, warnings } = read({}, {}, 'postgres://127.0.0.1/agents');

    expect(url).toBe('postgres://127.0.0.1/agents');
    expect(warnings).toEqual([expect.stringMatching(/^agent_config\.database is not used: DATABASE_URL is set/)]);
    expect(read(null, {}, url).warnings).toEqual([]);
  });

  it.each([
    ['neither is given', () => read(null), 'DATABASE_URL: is missing, and the manifest has no agent_config.database'],
    ['its password is not set', () => read({}, {}), 'agent_config.database.password: the environment variable DATABASE_PASSWORD is not set'],
    [
      'its password is empty',
      () => read({}, { DATABASE_PASSWORD: '' }),
      'agent_config.database.password: the environment variable DATABASE_PASSWORD is not set',
    ],
    ['a URL can not have its name', () => read({ dbname: 'a/b' }), /agent_config\.database\.dbname must hold none of/],
  ])('ends the start where %s', (_, reading, message) => {
    expect(reading).toThrow(message);
  });
});
