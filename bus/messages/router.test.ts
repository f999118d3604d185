import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPlainClientCall, routerCall } from './router.ts';

const call = {
  v: 1,
  callId: 'gen-1',
  origin: 'g1',
  want: 'body',
  deadlineAtMs: 2_000,
  createdAtMs: 1_000,
  detached: false,
  republished: false,
  keyId: 'k',
  traceparent: null,
  maxTokens: null,
  request: { model: 'm', messages: [{ role: 'user', content: 'Hello' }] },
  reply: null,
};

/** A call with one field that is anything at all, or is missing. */
const changed = fc
  .tuple(
    fc.constantFrom(...Object.keys(call)),
    fc.oneof(fc.constantFrom(null, '', 0, 1, 2, true, 'frames', 'none', {}, []), fc.jsonValue(), fc.constant(undefined)),
  )
  .map(([name, value]): unknown => JSON.parse(JSON.stringify({ ...call, [name]: value })));

describe('a plain call of a client', () => {
  it('is one that the schema passes as it is', () => {
    fc.assert(
      fc.property(changed, (value) => {
        if (isPlainClientCall(value)) expect(routerCall.safeParse(value)).toEqual({ success: true, data: value });
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['of a version that is not known', { ...call, v: 2 }],
    ['of an actor', { ...call, reply: { sessionId: 's', turnId: 't' } }],
    ['that wants no answer', { ...call, want: 'none' }],
    ['of a release that did not say whether it is detached', { ...call, detached: undefined }],
    ['with a request that is not plain', { ...call, request: { ...call.request, tools: [] } }],
  ])('is none %s', (_name, value) => {
    expect(isPlainClientCall(value)).toBe(false);
  });

  it('is what a gateway sends', () => {
    expect(isPlainClientCall(call)).toBe(true);
  });
});
