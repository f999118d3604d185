import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { startTestPostgres, type TestPostgres } from '../../../scripts/servers/test-services.mjs';
import { selfMadeAuthority } from '../../http/test-support/self-made-certificate.ts';
import { silentLog } from '../../telemetry/log.ts';
import type { Database } from '../database.ts';
import { openPostgres } from './open-postgres.ts';

/** A row per user: with TLS, without, or either. */
const ADMITTED = ['hostssl all tls_only all trust', 'hostnossl all plain_only all trust', 'host all postgres all trust', ''].join('\n');

/** Its certificate is for `localhost`, and not for 127.0.0.1. */
let server: TestPostgres;
let folder: string;
const opened: Database[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'switchyard-tls-'));
  const authority = selfMadeAuthority('Test authority');
  const { certificate, key } = authority.issue(['localhost']);
  const files = { 'server.crt': certificate, 'server.key': key, 'hba.conf': ADMITTED, 'root.crt': authority.certificate };
  for (const [name, text] of Object.entries({ ...files, 'other.crt': selfMadeAuthority('Another').certificate }))
    writeFileSync(join(folder, name), text, { mode: 0o600 });
  giveToServer(['.', 'server.crt', 'server.key', 'hba.conf']);
  server = await startTestPostgres({
    settings: { ssl: 'on', ssl_cert_file: join(folder, 'server.crt'), ssl_key_file: join(folder, 'server.key'), hba_file: join(folder, 'hba.conf') },
  });
  const database = await openPostgres({ url: server.url, applicationName: 'test', log: silentLog });
  await database.query('create role tls_only login; create role plain_only login');
  await database.close();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(opened.splice(0).map((database) => database.close()));
});
afterAll(async () => {
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** PostgreSQL does not run as root. */
function giveToServer(names: readonly string[]): void {
  chmodSync(folder, 0o755);
  if (process.getuid?.() !== 0) return;
  const uid = Number(spawnSync('id', ['-u', 'postgres'], { encoding: 'utf8' }).stdout);
  for (const name of names) chownSync(join(folder, name), uid, 0);
}

const root = (name: string) => ({ sslrootcert: join(folder, name) });

function urlOf({ host = 'localhost', user = 'postgres', ...parameters }: Record<string, string>): string {
  const url = new URL(server.url);
  url.hostname = host;
  url.username = user;
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Whether the connection is encrypted, or why there is none. */
async function connect(url: string): Promise<'tls' | 'plain' | string> {
  try {
    const database = await openPostgres({ url, applicationName: 'test', log: silentLog });
    opened.push(database);
    const { rows } = await database.query<{ ssl: boolean }>('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
    return rows[0]?.ssl ? 'tls' : 'plain';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

describe('sslmode, as libpq means it', () => {
  it.each([
    ['disable', 'postgres', 'plain'],
    ['disable', 'plain_only', 'plain'],
    ['disable', 'tls_only', /does not accept this user/],
    ['allow', 'postgres', 'plain'],
    ['allow', 'plain_only', 'plain'],
    ['allow', 'tls_only', 'tls'],
    ['prefer', 'postgres', 'tls'],
    ['prefer', 'plain_only', 'plain'],
    ['prefer', 'tls_only', 'tls'],
    ['require', 'postgres', 'tls'],
    ['require', 'plain_only', /does not accept this user/],
    ['require', 'tls_only', 'tls'],
  ])('%s as the user %s: %s', async (sslmode, user, expected) => {
    expect(await connect(urlOf({ sslmode, user }))).toMatch(expected);
  });

  it.each([
    ['disable', 'plain'],
    ['allow', 'plain'],
    ['prefer', 'plain'],
    ['require', /does not support TLS/],
    ['verify-ca', /does not support TLS/],
    ['verify-full', /does not support TLS/],
  ])('%s with a server without TLS: %s', async (sslmode, expected) => {
    const url = new URL(inject('postgresUrl'));
    url.searchParams.set('sslmode', sslmode);
    url.searchParams.set('sslrootcert', join(folder, 'root.crt'));

    if (expected === 'plain') expect(await connect(url.href)).toBe(expected);
    else expect(await connect(url.href)).toMatch(expected);
  });

  it('verify-ca checks the signature of the certificate, and not its name', async () => {
    expect(await connect(urlOf({ sslmode: 'verify-ca', ...root('root.crt') }))).toBe('tls');
    expect(await connect(urlOf({ sslmode: 'verify-ca', ...root('root.crt'), host: '127.0.0.1' }))).toBe('tls');
    expect(await connect(urlOf({ sslmode: 'verify-ca', ...root('other.crt') }))).toMatch(/certificate that is not trusted here \([A-Z_]+\)$/);
  });

  it('verify-full also checks its name', async () => {
    expect(await connect(urlOf({ sslmode: 'verify-full', ...root('root.crt') }))).toBe('tls');
    expect(await connect(urlOf({ sslmode: 'verify-full', ...root('root.crt'), host: '127.0.0.1' }))).toMatch(
      /not trusted here \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
    );
    expect(await connect(urlOf({ sslmode: 'verify-full', ...root('other.crt') }))).toMatch(/not trusted here/);
  });

  it('verify-full without a root certificate trusts the authorities of Node, and verify-ca none', async () => {
    vi.stubEnv('HOME', folder);

    expect(await connect(urlOf({ sslmode: 'verify-full' }))).toMatch(/not trusted here/);
    expect(await connect(urlOf({ sslmode: 'verify-full', sslrootcert: 'system' }))).toMatch(/not trusted here/);
    expect(await connect(urlOf({ sslmode: 'verify-ca' }))).toMatch(/sslmode=verify-ca needs a root certificate/);
    expect(await connect(urlOf({ sslmode: 'require', sslrootcert: 'system' }))).toMatch(/sslrootcert=system needs sslmode=verify-full/);
  });

  it('require with a root certificate checks the signature, like verify-ca', async () => {
    expect(await connect(urlOf({ sslmode: 'require', ...root('root.crt'), host: '127.0.0.1' }))).toBe('tls');
    expect(await connect(urlOf({ sslmode: 'require', ...root('other.crt') }))).toMatch(/not trusted here/);
  });

  it('and the root certificate may be in the variables of libpq', async () => {
    vi.stubEnv('PGSSLMODE', 'verify-full');
    vi.stubEnv('PGSSLROOTCERT', join(folder, 'root.crt'));

    expect(await connect(urlOf({}))).toBe('tls');
    expect(await connect(urlOf({ host: '127.0.0.1' }))).toMatch(/not trusted here/);
    expect(await connect(urlOf({ sslmode: 'disable' }))).toBe('plain');
  });

  it.each(['verify', 'Require', 'true'])('%s is refused, with the six that there are', async (sslmode) => {
    expect(await connect(urlOf({ sslmode }))).toMatch(/sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full/);
  });

  it('without it there is no TLS, and `ssl` of `pg` means what it meant', async () => {
    expect(await connect(urlOf({}))).toBe('plain');
    expect(await connect(urlOf({ ssl: '0' }))).toBe('plain');
    expect(await connect(urlOf({ ssl: 'no-verify' }))).toBe('tls');
    expect(await connect(urlOf({ ssl: 'true', ...root('root.crt') }))).toBe('tls');
    expect(await connect(urlOf({ ssl: 'true', ...root('root.crt'), host: '127.0.0.1' }))).toMatch(/not trusted here/);
  });
});

it('after a change of what the server admits, connections are made by the other way', async () => {
  expect(await connect(urlOf({ sslmode: 'prefer', user: 'tls_only' }))).toBe('tls');
  const [database] = opened;
  writeFileSync(join(folder, 'hba.conf'), ADMITTED.replace('hostssl all tls_only', 'hostnossl all tls_only'));
  const administer = await openPostgres({ url: server.url, applicationName: 'test', log: silentLog });
  opened.push(administer);
  await administer.query("select pg_reload_conf(), pg_terminate_backend(pid) from pg_stat_activity where usename = 'tls_only'");

  const ssl = async () => (await database?.query<{ ssl: boolean }>('select ssl from pg_stat_ssl where pid = pg_backend_pid()'))?.rows[0]?.ssl;
  await expect.poll(() => ssl().catch(() => null), { timeout: 60_000 }).toBe(false);
});
