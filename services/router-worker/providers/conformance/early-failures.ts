import { describe, expect, it } from 'vitest';
import { type AdapterUnderTest, API_KEY } from './under-test.ts';

export function earlyFailureCases(underTest: () => AdapterUnderTest): void {
  describe('failures before the first token', () => {
    it('reports a closed port as unavailable', async () => {
      await underTest().upstream.close();
      const { failure } = await underTest().run({});
      expect(failure).toMatchObject({ code: 'router.provider_unavailable' });
    });

    it('reports a connection that broke before any byte of the upstream', async () => {
      const { failure } = await underTest().run({ fault: 'hang-up' });
      expect(failure).toMatchObject({ code: 'router.provider_unavailable', details: { connection: 'reset' } });
    });

    it('reports a 200 that is no answer at all, as from a proxy before the upstream', async () => {
      const { failure, parts } = await underTest().run({ fault: 'garbage' });
      expect(failure).toMatchObject({
        code: 'router.provider_unavailable',
        message: expect.stringMatching(/ answered with text\/html, which held no answer$/),
      });
      expect(parts).toEqual([]);
    });

    it('bounds what it retains of an error', async () => {
      const { failure } = await underTest().run({ refuse: { status: 400, message: 'x'.repeat(1024 * 1024) } });
      expect(failure).toMatchObject({ code: 'router.provider_refused', details: { status: 400 } });
      expect(JSON.stringify(failure).length).toBeLessThan(10_000);
    });

    it.each([
      [400, {}, 'router.provider_refused'],
      [422, {}, 'router.provider_refused'],
      [413, {}, 'request.too_large'],
      [400, { code: 'context_length_exceeded' }, 'router.context_length'],
      [400, { code: 'content_policy_violation' }, 'router.content_policy'],
      [401, { code: 'invalid_api_key' }, 'router.provider_misconfigured'],
      [402, {}, 'router.provider_misconfigured'],
      [403, {}, 'router.provider_misconfigured'],
      [404, { code: 'model_not_found' }, 'router.provider_misconfigured'],
      [408, {}, 'router.provider_unavailable'],
      [429, {}, 'router.provider_rate_limited'],
      [429, { code: 'insufficient_quota' }, 'router.provider_misconfigured'],
      [500, {}, 'router.provider_unavailable'],
      [502, {}, 'router.provider_unavailable'],
      [503, {}, 'router.provider_overloaded'],
      [529, {}, 'router.provider_overloaded'],
    ] as const)('maps a %i %o to its kind', async (status, refusal, code) => {
      const { failure } = await underTest().run({ refuse: { status, ...refusal } });
      expect(failure).toMatchObject({ code, details: { status } });
    });

    it.each([
      ['retry-after', '7', 7_000],
      ['retry-after-ms', '1500', 1_500],
      ['retry-after', 'never', undefined],
    ])('reads %s: %s of a rate limit', async (header, value, retryAfterMs) => {
      const { failure } = await underTest().run({ refuse: { status: 429, headers: { [header]: value } } });
      expect(failure?.details.retryAfterMs).toBe(retryAfterMs);
    });

    it('reads a date in retry-after', async () => {
      const { failure } = await underTest().run({ refuse: { status: 503, headers: { 'retry-after': new Date(Date.now() + 60_000).toUTCString() } } });
      expect(failure?.details.retryAfterMs).toBeGreaterThan(50_000);
      expect(failure?.details.retryAfterMs).toBeLessThanOrEqual(60_000);
    });

    it('retains the upstream’s own error, without the credential that it quotes', async () => {
      const { failure } = await underTest().run({ refuse: { status: 400, message: `no good: ${API_KEY}`, code: 'bad_thing' } });
      expect(failure).toMatchObject({ details: { providerCode: 'bad_thing', raw: { message: 'no good: [redacted]' } } });
      expect(JSON.stringify(failure)).not.toContain(API_KEY);
    });

    it('removes from an address that an upstream quotes what could be a credential', async () => {
      const { failure } = await underTest().run({ refuse: { status: 400, message: 'can not read https://me:pw@files.test/a.png?sig=abc' } });
      expect(failure?.message).toContain('can not read https://files.test/a.png');
      expect(JSON.stringify(failure)).not.toMatch(/pw@|sig=abc/);
    });

    it.each([
      [429, 'router.provider_rate_limited'],
      ['503', 'router.provider_overloaded'],
      ['server_error', 'router.provider_unavailable'],
      ['rate_limit_exceeded', 'router.provider_rate_limited'],
      ['insufficient_quota', 'router.provider_misconfigured'],
      ['invalid_api_key', 'router.provider_misconfigured'],
      ['model_not_found', 'router.provider_misconfigured'],
      ['overloaded_error', 'router.provider_overloaded'],
      ['context_length_exceeded', 'router.context_length'],
      ['content_policy_violation', 'router.content_policy'],
      ['invalid_request_error', 'router.provider_refused'],
      ['timeout', 'router.provider_unavailable'],
      ['something_else', 'router.provider_unavailable'],
    ] as const)('reads an error with code %s inside a 200', async (errorCode, code) => {
      const { failure, parts } = await underTest().run({ fault: 'error-event', after: 0, errorCode });
      expect(failure).toMatchObject({ code });
      expect(parts).toEqual([]);
    });

    it.each(['ends-early', 'cut', 'malformed'] as const)('yields nothing of an answer that fails before its content (%s)', async (fault) => {
      const { failure, parts } = await underTest().run({ fault, after: 0 });
      expect(failure).toMatchObject({ code: 'router.provider_unavailable' });
      expect(parts).toEqual([]);
    });
  });
}
