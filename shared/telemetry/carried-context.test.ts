import { describe, expect, it } from 'vitest';
import { carriedIn } from './carried-context.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const tracestate = 'vendor=00f067aa0ba902b7,other=1';
const baggage = 'tenant=acme';

describe('what a caller sends beside its traceparent', () => {
  it('is passed on, baggage only where that is wanted', () => {
    expect(carriedIn({ traceparent, tracestate, baggage }, true)).toEqual({ tracestate, baggage });
    expect(carriedIn({ traceparent, tracestate, baggage }, false)).toEqual({ tracestate });
    expect(carriedIn({ baggage }, true)).toEqual({ baggage });
  });

  it.each([
    ['nothing was sent', {}],
    ['the traceparent that it belongs to is missing', { tracestate }],
    ['that one is invalid', { traceparent: 'nonsense', tracestate }],
    ['it is too long', { traceparent, tracestate: 'a'.repeat(513), baggage: 'b'.repeat(8_193) }],
    ['it can not stand in a header', { traceparent, tracestate: 'a\u0000', baggage: 'ü=1' }],
    ['it is empty', { traceparent, tracestate: '', baggage: '' }],
  ])('is left out when %s', (_, headers) => {
    expect(carriedIn(headers, true)).toBeUndefined();
  });
});
