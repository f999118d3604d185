import { describe, expect, it } from 'vitest';
import { addresses, patternOf, subjectOf } from './subjects.ts';

const INVALID = expect.objectContaining({ code: 'bus.invalid_subject' });

describe('subjectOf', () => {
  it.each(['', 'a.b', 'a*', '>', 'a b', 'a\n', '\u00e9', 'x'.repeat(129)])('refuses %j as a token', (token) => {
    expect(() => subjectOf(addresses.notices, token)).toThrow(INVALID);
  });

  it('refuses too few tokens and too many', () => {
    expect(() => subjectOf(addresses.tokens, 'gw1')).toThrow(INVALID);
    expect(() => subjectOf(addresses.tokens, 'gw1', 'call1', 'more')).toThrow(INVALID);
    expect(() => subjectOf(addresses.dispatchedCalls, 'more')).toThrow(INVALID);
  });

  it('fills the stars in order, with numbers too', () => {
    expect(subjectOf(addresses.tokens, 'gw-1', 'gen_1')).toBe('tok.gw-1.gen_1');
    expect(subjectOf(addresses.commands, 63)).toBe('cmd.63');
    expect(subjectOf(addresses.dispatchedCalls)).toBe('offer.router.call');
  });
});

describe('patternOf', () => {
  it('refuses an invalid token, and too many tokens', () => {
    expect(() => patternOf(addresses.tokens, '*')).toThrow(INVALID);
    expect(() => patternOf(addresses.notices, 's1', 'more')).toThrow(INVALID);
  });

  it('leaves the stars without a token', () => {
    expect(patternOf(addresses.tokens)).toBe('tok.*.*');
    expect(patternOf(addresses.tokens, 'gw1')).toBe('tok.gw1.*');
    expect(patternOf(addresses.tokens, 'gw1', 'call1')).toBe('tok.gw1.call1');
  });
});

describe('addresses', () => {
  it('do not overlap: no two begin with the same tokens', () => {
    const heads = Object.values(addresses).map(({ pattern }) => pattern.replace(/\.\*.*$/, ''));

    expect(new Set(heads).size).toBe(heads.length);
    expect(heads.length).toBeGreaterThan(5);
  });
});
