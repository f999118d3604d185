import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { errorChunkOf } from './chat-completions/error-chunk.ts';
import { errorBodyOf, previousErrorOf } from './error-body.ts';

const alone = { providerName: 'East', previousErrors: [] };

describe('the body of an error', () => {
  it('has no detail of an internal error', () => {
    const fault = new TypeError('cannot read /etc/secret');
    expect(errorBodyOf(fault, alone)).toEqual({
      error: { code: 500, message: 'Internal server error', type: 'server', param: '', metadata: { error_type: 'server' } },
    });
  });

  it('DESIGN 8: reports a provider that refuses the operator’s key as misconfigured, by 502, with its own error in the metadata', () => {
    const error = new SwitchyardError('router.provider_misconfigured', 'East: Incorrect API key provided: [redacted]', {
      details: { status: 401, raw: { message: 'Incorrect API key' }, providerCode: 'invalid_api_key' },
    });
    const metadata = {
      error_type: 'provider_unavailable',
      provider_name: 'East',
      raw: { message: 'Incorrect API key' },
      provider_code: 'invalid_api_key',
      provider_status: 401,
    };
    expect(errorBodyOf(error, alone)).toEqual({
      error: {
        code: 502,
        message: "East can't be used: its endpoint or credential is misconfigured on this router",
        type: 'provider_unavailable',
        param: '',
        metadata,
      },
    });
    expect(errorBodyOf(error, { ...alone, isWithoutFallback: true }).error).toMatchObject({
      code: 502,
      message: 'East: Incorrect API key provided: [redacted]',
      metadata,
    });
    expect(previousErrorOf(error, 'East', 'a/one')).toMatchObject({ code: 'invalid_api_key', status: 401 });
  });

  it('has the provider’s name and error, earlier errors, and how long to wait', () => {
    const error = new SwitchyardError('router.provider_rate_limited', 'East: slow down', {
      details: { status: 429, raw: { message: 'slow down' }, providerCode: 'rate_limit_exceeded', retryAfterMs: 1_200 },
    });
    const previousErrors = [previousErrorOf(new SwitchyardError('router.provider_unavailable', 'x', { details: { status: 500 } }), 'West', 'a/one')];
    expect(errorBodyOf(error, { providerName: 'East', previousErrors })).toEqual({
      error: {
        code: 429,
        message: 'East: slow down',
        type: 'rate_limit_exceeded',
        param: '',
        metadata: {
          error_type: 'rate_limit_exceeded',
          provider_name: 'East',
          raw: { message: 'slow down' },
          provider_code: 'rate_limit_exceeded',
          provider_status: 429,
          retry_after: 2,
          previous_errors: [{ provider: 'West', model: 'a/one', code: 'provider_unavailable', status: 500 }],
        },
      },
    });
  });

  it.each([
    [{ reason: 'ECONNREFUSED' }, 'ECONNREFUSED'],
    [{}, 'East closed the stream before it had finished'],
    [{ raw: '' }, ''],
  ])('has a raw error also of a provider that sent none: %j', (details, raw) => {
    const error = new SwitchyardError('router.provider_unavailable', 'East closed the stream before it had finished', { details });
    expect(errorBodyOf(error, alone).error.metadata).toMatchObject({ provider_name: 'East', raw });
    expect(errorBodyOf(error, { ...alone, providerName: null }).error.metadata).not.toHaveProperty('raw');
  });

  it.each([
    [59_001, 60],
    [3_600_000, 60],
    [Number.POSITIVE_INFINITY, 60],
  ])('bounds the wait to a minute, whatever the provider says: %i ms', (retryAfterMs, expected) => {
    const error = new SwitchyardError('router.provider_overloaded', 'East: full', { details: { retryAfterMs } });
    expect(errorBodyOf(error, alone).error.metadata).toMatchObject({ retry_after: expected });
  });

  it('names no provider when none was called', () => {
    const error = new SwitchyardError('router.no_provider', 'no provider', { details: { excluded_by: [{ filter: 'zdr', endpoints: ['a@b'] }] } });
    expect(errorBodyOf(error, { providerName: null, previousErrors: [] }).error).toMatchObject({
      code: 503,
      metadata: { error_type: 'not_found', excluded_by: [{ filter: 'zdr', endpoints: ['a@b'] }] },
    });
  });
});

it('an error chunk holds an integer code, an error_type and one empty choice', () => {
  const body = errorBodyOf(new SwitchyardError('router.timeout', 'too late'), alone);
  expect(errorChunkOf(body, { id: 'gen-1', created: 7, model: 'a/one', provider: 'East' })).toEqual({
    id: 'gen-1',
    object: 'chat.completion.chunk',
    created: 7,
    model: 'a/one',
    provider: 'East',
    error: { code: 408, message: 'too late', metadata: { error_type: 'timeout', provider_name: 'East' } },
    choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }],
  });
});
