import pg from 'pg';

/** Permanent refusals by SQLSTATE. */
const REFUSALS: Record<string, string> = {
  '28P01': 'refuses the password',
  '28000': 'does not accept this user, or this machine (pg_hba.conf)',
  '3D000': 'has no such database',
  '42501': 'does not allow this user to connect to the database',
};

/** Node's codes for an untrusted certificate. */
const CERTIFICATE_CODE = /CERT|UNABLE_TO_(VERIFY|GET_ISSUER)/;

/** Why the server permanently refuses us, as a phrase after its name, without credentials. Null for what may pass. */
export function refusalOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (error instanceof pg.DatabaseError) return REFUSALS[code] ?? null;
  if (error.message.startsWith('SASL') || error.message.includes('password must be a string')) return 'requires a password, and the URL has none that fits';
  if (error.message.includes('does not support SSL')) return 'does not support TLS, which the URL requires (sslmode)';
  return CERTIFICATE_CODE.test(code) ? `has a certificate that is not trusted here (${code})` : null;
}

/** For the log. The server's own messages name the user. */
export function withoutCredentials(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  // Several refusing addresses give one error without a message.
  return refusalOf(error) ?? [code, error.message].filter((part) => part !== null && part !== '').join(': ');
}
