import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ErrorEvent } from '../providers/http-stream/error-event.ts';
import { toBreak, toRefusal, toUnreachable, type Upstream } from '../providers/http-stream/to-error.ts';
import { describeError } from '../providers/openai-compatible/describe-error.ts';
import type { Candidate } from './candidates.ts';
import { isRepeated, remainingAfter, remainingForText } from './fall-back.ts';
import { type HealthEffect, healthEffectOf } from './health/health-effect.ts';

const upstream: Upstream = { name: 'East', apiKey: null, describeError };

function answered(status: number, error: Record<string, unknown> = {}): SwitchyardError {
  return toRefusal(upstream, { status, header: () => null, text: JSON.stringify({ error: { message: 'no', ...error } }), nowMs: 0 });
}
const unreachable = (code: string) => toUnreachable(upstream, Object.assign(new Error(code), { code }));
const broken = (error: unknown) => toBreak(upstream, error);
const silent = new SwitchyardError('router.provider_unavailable', 'East was silent for 60000 ms', { details: { reason: 'timeout' } });
const incomplete = new SwitchyardError('router.provider_unavailable', 'East closed the stream before it had finished');

/** Behind a failed endpoint with 1,000 tokens of context: one of the same model with as many, one with more, and another model. */
type Next = 'small' | 'large' | 'other';
const modelOf = (id: string) => ({ id }) as Candidate['model'];
const [same, another] = [modelOf('m/a'), modelOf('n/b')];
const candidate = (model: Candidate['model'], name: string, context: number) =>
  ({ model, provider: { slug: name, name }, endpoint: { provider: name, upstream_model: name, context_length: context } }) as Candidate;
const failed = candidate(same, 'failed', 1_000);
const rest = [candidate(same, 'small', 1_000), candidate(same, 'large', 2_000), candidate(another, 'other', 100)];
const ALL: Next[] = ['small', 'large', 'other'];

interface Row {
  row: string;
  error: SwitchyardError;
  /** What is tried behind it. */
  next: Next[];
  health: HealthEffect;
  /** Whether the same endpoint is tried once more before. */
  again?: true;
}

const rows: Row[] = [
  { row: 'a refused connection', error: unreachable('ECONNREFUSED'), next: ALL, health: 'failure', again: true },
  { row: 'a failed look-up of its name', error: unreachable('ENOTFOUND'), next: ALL, health: 'failure' },
  { row: 'a failed look-up that may be repeated', error: unreachable('EAI_AGAIN'), next: ALL, health: 'failure', again: true },
  { row: 'a TLS error', error: unreachable('ERR_TLS_CERT_ALTNAME_INVALID'), next: ALL, health: 'failure' },
  { row: 'a connection that takes too long', error: unreachable('UND_ERR_CONNECT_TIMEOUT'), next: ALL, health: 'failure' },
  { row: 'a reset', error: unreachable('ECONNRESET'), next: ALL, health: 'failure', again: true },
  { row: 'a reset behind the headers', error: broken(Object.assign(new Error('reset'), { code: 'ECONNRESET' })), next: ALL, health: 'failure' },
  { row: 'no headers or no first token in time', error: silent, next: ALL, health: 'failure' },
  { row: '429', error: answered(429), next: ALL, health: 'rate-limited' },
  { row: '429 for lack of credit', error: answered(429, { code: 'insufficient_quota' }), next: ALL, health: 'credential' },
  ...[408, 500, 502, 503, 504, 529].map((status): Row => ({ row: `${status}`, error: answered(status), next: ALL, health: 'failure' })),
  { row: '401', error: answered(401), next: ALL, health: 'credential' },
  { row: '402', error: answered(402), next: ALL, health: 'credential' },
  { row: '403', error: answered(403), next: ALL, health: 'permission' },
  { row: '404', error: answered(404), next: ALL, health: 'missing' },
  { row: '200 with an error event', error: broken(new ErrorEvent({ message: 'oh', code: 500 })), next: ALL, health: 'failure' },
  {
    row: '200 with an error event that says overloaded',
    error: broken(new ErrorEvent({ message: 'oh', type: 'overloaded_error' })),
    next: ALL,
    health: 'failure',
  },
  { row: '200 with an error event that says rate limit', error: broken(new ErrorEvent({ message: 'oh', code: 429 })), next: ALL, health: 'rate-limited' },
  { row: 'a malformed stream', error: broken(new SyntaxError('no JSON')), next: ALL, health: 'failure' },
  { row: 'an empty completion without a finish reason', error: incomplete, next: ALL, health: 'failure' },
  { row: '400 context length exceeded', error: answered(400, { code: 'context_length_exceeded' }), next: ['large', 'other'], health: 'none' },
  { row: '400 unsupported parameter that stands', error: answered(400, { code: 'unsupported_parameter' }), next: ['other'], health: 'none' },
  ...[400, 422].map((status): Row => ({ row: `${status} of another kind`, error: answered(status), next: ['other'], health: 'none' })),
  { row: '413', error: answered(413), next: ['other'], health: 'none' },
  { row: 'moderation of the input', error: answered(400, { code: 'content_policy_violation' }), next: ['other'], health: 'none' },
  { row: 'moderation of the input as 403', error: answered(403, { type: 'moderation' }), next: ['other'], health: 'none' },
];

describe('what is tried next, and what it says about the endpoint, after', () => {
  it.each(rows)('DESIGN 8: after $row the next endpoints and the health are those of the table', ({ error, next, health, again = false }) => {
    expect(remainingAfter(error.code, failed, rest).map(({ provider }) => provider.slug)).toEqual(next);
    expect(healthEffectOf(error)).toBe(health);
    expect(isRepeated(error)).toBe(again);
  });

  it('the text of files is tried at all other endpoints, unless the content was refused', () => {
    const remaining = (...codes: SwitchyardError['code'][]) =>
      remainingForText(
        codes.map((code) => ({ code, candidate: failed })),
        rest,
      ).map(({ provider }) => provider.slug);
    for (const { error } of rows.filter((row) => row.error.code !== 'router.content_policy')) expect(remaining(error.code)).toEqual(ALL);
    expect(remaining('router.provider_refused', 'router.content_policy')).toEqual(['other']);
  });

  it('an error of this program, which says nothing about it', () => {
    expect(healthEffectOf(new TypeError('a bug'))).toBe('none');
    expect(isRepeated(new TypeError('a bug'))).toBe(false);
  });
});
