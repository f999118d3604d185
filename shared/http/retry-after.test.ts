import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from './retry-after.ts';

const NOW = Date.UTC(1994, 10, 6, 8, 49, 30);

describe('parseRetryAfter', () => {
  it.each([null, '', ' ', 'soon', '1.5', '1e3', '0x10', '5 s', 'Sun, 99 Foo 1994', 'Sunday'])('knows nothing of %j', (value) => {
    expect(parseRetryAfter(value, NOW)).toBeNull();
  });

  it.each([
    ['0', 0],
    [' 7 ', 7_000],
    ['60', 60_000],
    ['61', 60_000],
    ['999999999999', 60_000],
    ['-5', 0],
    ['Sun, 06 Nov 1994 08:49:37 GMT', 7_000],
    ['Sunday, 06-Nov-94 08:49:37 GMT', 7_000],
    ['Sun Nov  6 08:49:37 1994', 7_000],
    ['Sun, 06 Nov 1994 09:49:37 GMT', 60_000],
    ['Sun, 06 Nov 1994 08:49:00 GMT', 0],
  ])('reads %j as a wait of %d ms', (value, waitMs) => {
    expect(parseRetryAfter(value, NOW)).toBe(waitMs);
  });
});
