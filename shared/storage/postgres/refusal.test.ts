import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { refusalOf, withoutCredentials } from './refusal.ts';

const fromServer = (code: string, message: string) => Object.assign(new pg.DatabaseError(message, message.length, 'error'), { code });
const withCode = (code: string, message = 'failed') => Object.assign(new Error(message), { code });

describe('a server that refuses the login', () => {
  it.each([
    ['starts just now', fromServer('57P03', 'the database system is starting up')],
    ['has no connection to spare', fromServer('53300', 'sorry, too many clients already')],
    ['is not there', withCode('ECONNREFUSED')],
    ['has no address yet', withCode('ENOTFOUND')],
    ['answers too late', new Error('timeout expired')],
  ])('may do so later when it %s', (_, error) => {
    expect(refusalOf(error)).toBeNull();
  });

  it.each([
    ['refuses a password', fromServer('28P01', 'password authentication failed for user "hidden"')],
    ['does not know a user', fromServer('28000', 'role "hidden" does not exist')],
    ['lacks the database', fromServer('3D000', 'database "agents" does not exist')],
    ['refuses a user', fromServer('42501', 'permission denied for database "agents"')],
    ['wants a password and there is none', new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string')],
    ['speaks no TLS', new Error('The server does not support SSL connections')],
    ['has a certificate of its own making', withCode('DEPTH_ZERO_SELF_SIGNED_CERT')],
    ['has a certificate of an unknown authority', withCode('UNABLE_TO_VERIFY_LEAF_SIGNATURE')],
    ['has the certificate of another host', withCode('ERR_TLS_CERT_ALTNAME_INVALID')],
    ['has a certificate that is too old', withCode('CERT_HAS_EXPIRED')],
  ])('never will when it %s, and no word of ours names the user', (_, error) => {
    expect(refusalOf(error)).toEqual(expect.any(String));
    expect(withoutCredentials(error)).not.toContain('hidden');
  });

  it('is described by its code where its error has no text, as when several addresses refuse', () => {
    expect(withoutCredentials(withCode('ECONNREFUSED', ''))).toBe('ECONNREFUSED');
    expect(withoutCredentials(withCode('ECONNRESET', 'read ECONNRESET'))).toBe('ECONNRESET: read ECONNRESET');
  });
});
