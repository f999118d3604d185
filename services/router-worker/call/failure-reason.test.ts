import { expect, it } from 'vitest';
import { failureReason } from './failure-reason.ts';

const failure = (details: Record<string, unknown>) => ({ code: 'router.provider_unavailable' as const, message: 'East closed the stream', details });

it.each([
  [
    { status: 401, raw: 'Bad key' },
    { status: 401, reason: 'it refuses the credential' },
  ],
  [
    { status: 404, raw: {}, providerCode: 'model_not_found' },
    { status: 404, reason: 'it has no such model or address', provider_code: 'model_not_found' },
  ],
  [
    { status: 418, raw: {} },
    { status: 418, reason: 'it answered 418' },
  ],
  [{ reason: 'ECONNREFUSED' }, { reason: 'ECONNREFUSED' }],
  [{ raw: { message: 'x' } }, { reason: 'it sent an error' }],
  [{}, { reason: 'East closed the stream' }],
])('a failure with %j is logged with its reason', (details, fields) => {
  expect(failureReason(failure(details))).toEqual(fields);
});

it('no text of a provider is logged: it may quote a customer', () => {
  const words = 'you said: my name is Ada';
  expect(JSON.stringify(failureReason({ ...failure({ status: 400, raw: words, providerCode: words }), message: words }))).not.toContain('Ada');
});
