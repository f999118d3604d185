import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { actorFields } from './actor-fields.ts';
import { clientCallBytes, isClientCall, routerCall } from './router.ts';

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

const embedding = { format: 'float' as const, dimensions: 8, inputType: null, tokens: [[1, 2]] };

/** A call with one field missing or arbitrary. */
const changed = fc
  .tuple(
    fc.constantFrom(...Object.keys(call)),
    fc.oneof(fc.constantFrom(null, '', 0, 1, 2, true, 'frames', 'none', {}, []), fc.jsonValue(), fc.constant(undefined)),
  )
  .map(([name, value]): unknown => JSON.parse(JSON.stringify({ ...call, [name]: value })));

it('has what a call for vectors asks for', () => {
  expect(routerCall.parse({ ...call, embedding })).toMatchObject({ embedding });
  for (const wrong of [{ ...embedding, format: 'text' }, { ...embedding, tokens: [[]] }, { ...embedding, dimensions: 0 }, null]) {
    expect(routerCall.safeParse({ ...call, embedding: wrong }).success).toBe(false);
  }
});

describe('the quick check of a client call', () => {
  it('passes the schema unchanged', () => {
    fc.assert(
      fc.property(changed, (value) => {
        if (isClientCall(value)) expect(routerCall.safeParse(value)).toEqual({ success: true, data: value });
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['of a version that is not known', { ...call, v: 2 }],
    ['of an actor', { ...call, reply: { sessionId: 's', ...actorFields('t') } }],
    ['that wants no answer', { ...call, want: 'none' }],
    ['for vectors', { ...call, embedding }],
    ['whose surface has no name', { ...call, surface: 7 }],
    ['of a release that did not say whether it is detached', { ...call, detached: undefined }],
    ['whose configuration has no hash', { ...call, admittedUnder: 7 }],
    ['whose wish for metadata is no boolean', { ...call, routerMetadata: 'enabled' }],
    ['with a request that is not valid', { ...call, request: { ...call.request, tools: {} } }],
  ])('is none %s', (_name, value) => {
    expect(isClientCall(value)).toBe(false);
  });

  it('is the form that a gateway sends', () => {
    expect(isClientCall(call)).toBe(true);
    expect(isClientCall({ ...call, surface: 'chat-completions' })).toBe(true);
    expect(isClientCall({ ...call, reserved: true, countedTokens: 7, maxTokens: 4_096 })).toBe(true);
    expect(isClientCall({ ...call, admittedUnder: '0123456789ab' })).toBe(true);
    expect(isClientCall({ ...call, routerMetadata: true })).toBe(true);
    expect(isClientCall({ ...call, request: { ...call.request, top_p: 0.9, tools: [], newer_field: 1 } })).toBe(true);
  });
});

it('has the same text as JSON.stringify, whatever the names of its callers', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '\u007f', '\u2028', '\ud800', 'key-1'));
  const facts = fc.record({
    v: fc.constant(1 as const),
    callId: text,
    origin: text,
    want: fc.constantFrom('frames' as const, 'body' as const),
    surface: text,
    deadlineAtMs: fc.double({ noDefaultInfinity: true, noNaN: true }),
    createdAtMs: fc.integer(),
    detached: fc.boolean(),
    republished: fc.boolean(),
    keyId: text,
    traceparent: fc.option(text),
    maxTokens: fc.option(fc.integer({ min: 1 })),
  });

  fc.assert(
    fc.property(
      facts,
      fc.constantFrom({}, { reserved: true }, { countedTokens: 7 }, { admittedUnder: 'a"b' }, { routerMetadata: true }, { embedding }),
      (fixed, limits) => {
        const given = { ...fixed, ...limits };
        const { request, ...rest } = JSON.parse(clientCallBytes(given, Buffer.from(JSON.stringify(call.request))).toString());
        expect(rest).toEqual(JSON.parse(JSON.stringify({ ...given, reply: null })));
        expect(request).toEqual(call.request);
        expect(Object.keys({ reserved: true, countedTokens: 7, admittedUnder: '', routerMetadata: true, embedding, ...rest, request }).sort()).toEqual(
          Object.keys(routerCall.omit({ step: true }).shape).sort(),
        );
      },
    ),
  );
});
