import { expect, it } from 'vitest';
import { AgentError } from '#client/agent-error.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { FailureWithFix } from './failure-with-fix.ts';
import { failureJson, failureText, failureToPrint } from './failures.ts';

it.each([
  [new SwitchyardError('config.invalid', 'm'), 1],
  [new SwitchyardError('service.unreachable', 'm'), 3],
  [new SwitchyardError('request.forbidden', 'm'), 4],
  [new AgentError('client.no_answer', 'm'), 3],
  [new AgentError('client.redirected', 'm'), 1],
  [new AgentError('not_ready', 'm', { status: 503 }), 3],
  [new AgentError('unauthorized', 'm', { status: 401 }), 4],
  [new AgentError('not_found', 'm', { status: 404 }), 1],
])('%o has the exit code %i', (error, exitCode) => {
  expect(failureToPrint(error)).toMatchObject({ code: error.code, message: 'm', fix: null, exitCode });
  expect(failureToPrint(new FailureWithFix(error, 'f', 'where: m'))).toMatchObject({ code: error.code, message: 'where: m', fix: 'f', exitCode });
});

it('leaves a bug to be printed with its stack', () => {
  expect(failureToPrint(new TypeError('x'))).toBeNull();
  expect(failureToPrint(new FailureWithFix(new TypeError('x'), 'f'))).toBeNull();
});

it('has one shape as JSON, without credentials', () => {
  const error = new SwitchyardError('service.unreachable', 'no postgres://user:word@host');
  const failure = failureToPrint(new FailureWithFix(error, 'correct postgres://user:word@host')) ?? expect.fail('it is known');

  expect(JSON.parse(failureJson(failure))).toEqual({
    error: { code: 'service.unreachable', message: 'no postgres://[redacted]@host', fix: 'correct postgres://[redacted]@host' },
  });
  expect(failureText(failure)).toBe('no postgres://[redacted]@host\n  fix: correct postgres://[redacted]@host');
  expect(failureText({ message: 'm', fix: null })).toBe('m');
});
