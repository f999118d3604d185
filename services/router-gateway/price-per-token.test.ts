import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pricePerToken } from './price-per-token.ts';

describe('pricePerToken', () => {
  it.each([
    ['0', '0'],
    ['0.0', '0'],
    ['000', '0'],
    ['0.15', '0.00000015'],
    ['2.50', '0.0000025'],
    ['1', '0.000001'],
    ['1000000', '1'],
    ['12000000', '12'],
    ['1234567.891', '1.234567891'],
    ['0.000000001', '0.000000000000001'],
    ['999999999.999999999', '999.999999999999999'],
  ])('turns %s per million into %s per token', (perMillion, perToken) => {
    expect(pricePerToken(perMillion)).toBe(perToken);
  });

  it('loses no digit of any price that may be configured', () => {
    const decimal = fc.tuple(fc.integer({ min: 0, max: 999_999_999 }), fc.stringMatching(/^\d{1,9}$/)).map(([whole, fraction]) => `${whole}.${fraction}`);
    fc.assert(
      fc.property(decimal, (perMillion) => {
        // As an integer of 10^-15 USD, which holds nine places of a price per million.
        const femto = (text: string, places: number) => {
          const [whole = '', fraction = ''] = text.split('.');
          return BigInt(whole + fraction.padEnd(places, '0'));
        };
        expect(femto(pricePerToken(perMillion), 15)).toBe(femto(perMillion, 9));
      }),
    );
  });
});
