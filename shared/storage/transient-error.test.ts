import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { isTransientError, sqlStateOf } from './transient-error.ts';

const withCode = (code: string, message = 'failed') => Object.assign(new Error(message), { code });

describe('a transient error', () => {
  it.each([
    ['a repeated key', withCode('23505')],
    ['a text that no column takes', withCode('22021')],
    ['a fault of the program', withCode('ERR_INVALID_ARG_TYPE')],
    ['an error without a code', new TypeError('x is not a function')],
    ['a database that was closed by us', new SwitchyardError('storage.closed', 'closed')],
    ['what is no error', 'ECONNRESET'],
    ['a fault of ours that speaks of connections', new TypeError("can't read 'connection' of undefined: timeout")],
    ['a feature that the server does not have', withCode('0A000')],
    ['a statement inside a transaction that has failed', withCode('25P02')],
    ['a request that is at fault', new SwitchyardError('request.invalid', 'invalid')],
  ])('is not %s', (_, error) => {
    expect(isTransientError(error)).toBe(false);
  });

  it.each([
    ['a lost connection', withCode('ECONNRESET')],
    ['a server that shuts down', withCode('57P01')],
    ['a deadlock', withCode('40P01')],
    ['a lock that was not had in time', withCode('55P03')],
    ['two transactions that can not both be', withCode('40001')],
    ['a statement that took too long', withCode('57014')],
    ['a server that starts', withCode('57P03')],
    ['a server that was restarted after a crash', withCode('57P02')],
    ['a server with no connection to spare', withCode('53300')],
    ['a full disk', withCode('53100')],
    ['a lost connection, in the words of the server', withCode('08006')],
    ['a server that only reads, after a failover', withCode('25006')],
    ['a transaction that was idle for too long', withCode('25P03')],
    ['a prepared statement that a proxy has forgotten', withCode('26000')],
    ['a prepared statement whose table was changed', Object.assign(withCode('0A000'), { routine: 'RevalidateCachedQuery' })],
    ['a name that can not be resolved now', withCode('EAI_AGAIN')],
    ['a server that refuses connections', withCode('ECONNREFUSED')],
    ['a connection that ended without a code', new Error('Connection terminated unexpectedly')],
    ['a connection that was not had in time', new Error('timeout exceeded when trying to connect')],
    ['a lost connection, in our own words', new SwitchyardError('service.unreachable', 'lost')],
    ['a queue that is full', new SwitchyardError('service.not_ready', 'too many')],
  ])('is %s', (_, error) => {
    expect(isTransientError(error)).toBe(true);
  });

  it('distinguishes an SQLSTATE from a code of the system', () => {
    expect(sqlStateOf(withCode('EPIPE'))).toBeNull();
    expect(sqlStateOf(withCode('P0001'))).toBe('P0001');
  });
});
