import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MAX_LIMIT_USD, nanoOfUsd, usdOfNano } from './nano-usd.ts';

it('is exact for every amount of a billionth up to the largest limit', () => {
  const amounts = fc.bigInt({ min: 0n, max: BigInt(MAX_LIMIT_USD) * 1_000_000_000n }).map(Number);
  expect(fc.check(fc.property(amounts, (nano) => nanoOfUsd(usdOfNano(nano)) === nano)).failed).toBe(false);
});
