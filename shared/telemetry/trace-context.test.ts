import { describe, expect, it } from 'vitest';
import { traceContextOf, traceIdIn } from './trace-context.ts';

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

  it('is read from what travelled', () => {
    expect(traceIdIn(PARENT)).toBe(TRACE);
    expect(traceIdIn(null)).toBeNull();
    expect(traceIdIn('nonsense')).toBeNull();
  });
});
