import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { isPassingFault, sqlStateOf } from './passing-fault.ts';

const withCode = (code: string, message = 'failed') => Object.assign(new Error(message), { code });

describe('a passing fault', () => {
  it.each([
    ['a repeated key', withCode('23505')],
    ['a text that no column takes', withCode('22021')],
    ['a fault of the program', withCode('ERR_INVALID_ARG_TYPE')],
    ['an error without a code', new TypeError('x is not a function')],
    ['a database that was closed by us', new SwitchyardError('storage.closed', 'closed')],
    ['what is no error', 'ECONNRESET'],
  ])('is not %s', (_, error) => {
    expect(isPassingFault(error)).toBe(false);
  });

  it.each([
    ['a lost connection', withCode('ECONNRESET')],
    ['a server that shuts down', withCode('57P01')],
    ['a deadlock', withCode('40P01')],
    ['a lock that was not had in time', withCode('55P03')],
    ['a connection that ended without a code', new Error('Connection terminated unexpectedly')],
    ['a queue that is full', new SwitchyardError('service.not_ready', 'too many')],
  ])('is %s', (_, error) => {
    expect(isPassingFault(error)).toBe(true);
  });

  it('tells an SQLSTATE from a code of the system', () => {
    expect(sqlStateOf(withCode('EPIPE'))).toBeNull();
    expect(sqlStateOf(withCode('P0001'))).toBe('P0001');
  });
});
