import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { sslMode } from '../../contracts/manifest/search.ts';
import { SwitchyardError } from '../../errors/switchyard-error.ts';

/** False: without TLS. */
type Transport = false | ConnectionOptions;
type SslMode = (typeof sslMode.options)[number];

/** Of the URL; `pg` gives some of them another meaning. */
const PARAMETERS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'ssl', 'uselibpqcompat'];
/** A server's `pg_hba.conf` may require TLS of this user, or refuse it. */
const NOT_ADMITTED = '28000';

/** How connections are made: `current`, or the other way once the server has refused that one. */
export interface Transports {
  current: Transport;
  /** @returns whether a connection of the other kind may succeed: `current` is that one from now on */
  failed(error: unknown): boolean;
}

/**
 * What `sslmode` means to libpq: `allow` and `prefer` have a second way, `require` encrypts without a check of the server's certificate (with one where there
 * is a root certificate, as libpq does), `verify-ca` checks its signature, `verify-full` also the host's name. Root certificates are those of `sslrootcert`
 * (`system`: Node's), of PGSSLROOTCERT, or of ~/.postgresql/root.crt; `verify-full` takes Node's without any of these. No `sslmode`: PGSSLMODE, else no TLS.
 * @returns the URL without these parameters
 * @throws `config.invalid`; the error of a file that can't be read
 */
export function readTransports(url: string, environment: NodeJS.ProcessEnv = process.env): { url: string; transports: Transports } {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const parameters = parsed?.searchParams ?? new URLSearchParams();
  const mode = modeOf(parameters.get('sslmode') ?? modeOfFlag(parameters.get('ssl')) ?? environment['PGSSLMODE'] ?? 'disable');
  const root = rootCertificate(parameters.get('sslrootcert') ?? environment['PGSSLROOTCERT'] ?? null, mode);
  const [cert, key] = [parameters.get('sslcert'), parameters.get('sslkey')];
  const client = { ...(cert !== null && { cert: readFileSync(cert, 'utf8') }), ...(key !== null && { key: readFileSync(key, 'utf8') }) };
  const given = PARAMETERS.filter((name) => parameters.has(name));
  for (const name of given) parameters.delete(name);
  return { url: given.length === 0 || parsed === null ? url : parsed.href, transports: transportsOf(mode, { ...client, ...tlsOf(mode, root) }) };
}

function modeOf(text: string): SslMode {
  // Of `pg`.
  if (text === 'no-verify') return 'require';
  const mode = sslMode.safeParse(text);
  if (!mode.success) throw invalid(`sslmode must be one of ${sslMode.options.join(', ')}`);
  return mode.data;
}

/** `pg`'s own parameter. */
function modeOfFlag(flag: string | null): string | null {
  if (flag === null || flag === 'no-verify') return flag;
  return flag === 'true' || flag === '1' ? 'verify-full' : 'disable';
}

/** Null: Node's. */
function rootCertificate(given: string | null, mode: SslMode): string | null {
  if (mode === 'disable' || mode === 'allow' || mode === 'prefer') return null;
  if (given === 'system') {
    if (mode !== 'verify-full') throw invalid('sslrootcert=system needs sslmode=verify-full: public authorities issue certificates for any host');
    return null;
  }
  const usual = join(homedir(), '.postgresql', 'root.crt');
  const path = given ?? (existsSync(usual) ? usual : null);
  if (path !== null) return readFileSync(path, 'utf8');
  if (mode === 'verify-ca') throw invalid('sslmode=verify-ca needs a root certificate: PGSSLROOTCERT, or sslrootcert in the URL, names its file');
  return null;
}

function tlsOf(mode: SslMode, root: string | null): ConnectionOptions {
  if (mode === 'verify-full') return root === null ? {} : { ca: root };
  if (root === null) return { rejectUnauthorized: false };
  return { ca: root, checkServerIdentity: () => undefined };
}

function transportsOf(mode: SslMode, tls: ConnectionOptions): Transports {
  const ways: Transport[] = mode === 'disable' ? [false] : mode === 'allow' ? [false, tls] : mode === 'prefer' ? [tls, false] : [tls];
  const [first = false, second] = ways;
  const transports: Transports = {
    current: first,
    failed(error) {
      if (second === undefined || !mayBeItsTransport(error, transports.current)) return false;
      transports.current = transports.current === first ? second : first;
      return true;
    },
  };
  return transports;
}

function mayBeItsTransport(error: unknown, transport: Transport): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (error instanceof pg.DatabaseError) return code === NOT_ADMITTED;
  return transport !== false && (/^(?:ERR_SSL|ERR_TLS|EPROTO)/.test(code) || error.message.includes('does not support SSL'));
}

function invalid(why: string): SwitchyardError {
  return new SwitchyardError('config.invalid', `the TLS of PostgreSQL can't be set up: ${why}`);
}
