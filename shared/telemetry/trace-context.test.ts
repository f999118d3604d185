import { describe, expect, it } from 'vitest';
import { contextBelow, spanIdOf, traceContextOf, traceIdIn } from './trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const PARENT = `00-${TRACE}-b7ad6b7169203331-01`;

describe('the trace of a request', () => {
  it.each([
    undefined,
    '',
    ['two', 'headers'],
    'nonsense',
    `ff-${TRACE}-b7ad6b7169203331-01`,
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    PARENT.toUpperCase(),
  ])('is a new one for %j', (header) => {
    const { traceId, traceparent } = traceContextOf(header);
    expect(traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
    expect(traceIdIn(traceparent)).toBe(traceId);
  });

  it('is the caller’s when it sent one', () => {
    expect(traceContextOf(PARENT)).toEqual({ traceId: TRACE, traceparent: PARENT });
  });

  it('is read from a message', () => {
    expect(traceIdIn(PARENT)).toBe(TRACE);
    expect(traceIdIn(null)).toBeNull();
    expect(traceIdIn('nonsense')).toBeNull();
  });
});

describe('a derived context', () => {
  it('is below its parent under an id that is always the same, and absent without one', () => {
    const below = contextBelow(PARENT, 'trn_1');
    expect(below).toBe(`00-${TRACE}-${spanIdOf('trn_1')}-01`);
    expect(contextBelow(PARENT, 'trn_2')).not.toBe(below);
    expect(contextBelow(PARENT.replace(/01$/, '00'), 'trn_1')).toMatch(/-00$/);
    expect([contextBelow(null, 'trn_1'), contextBelow('nonsense', 'trn_1')]).toEqual([null, null]);
  });
});
