import pg from 'pg';

/** What the server says no to for good, by its SQLSTATE. */
const REFUSALS: Record<string, string> = {
  '28P01': 'refuses the password',
  '28000': 'lets nobody in as this user, or from this machine (pg_hba.conf)',
  '3D000': 'has no such database',
  '42501': 'does not let this user into the database',
};

/** Node's codes of a certificate that it does not trust. */
const CERTIFICATE_CODE = /CERT|UNABLE_TO_(VERIFY|GET_ISSUER)/;

/**
 * Why a server that is there does not let us in, in words that follow its name and hold no credentials. Null when it may do so later: it
 * is not there, or just starting.
 */
export function refusalOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (error instanceof pg.DatabaseError) return REFUSALS[code] ?? null;
  if (error.message.startsWith('SASL') || error.message.includes('password must be a string')) return 'asks for a password, and the URL has none that fits';
  if (error.message.includes('does not support SSL')) return 'does not speak TLS, which the URL asks for (sslmode)';
  return CERTIFICATE_CODE.test(code) ? `has a certificate that is not trusted here (${code})` : null;
}

/** An error's text for the log. The server's own words about a refusal name the user, so ours stand in their place. */
export function withoutCredentials(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  // Several addresses that all refuse make one error without a text.
  return refusalOf(error) ?? [code, error.message].filter((part) => part !== null && part !== '').join(': ');
}
