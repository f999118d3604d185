import { describe, expect, it } from 'vitest';
import { judgePattern } from './pattern-safety.ts';

describe('judgePattern', () => {
  it.each([
    '^(a+)+$',
    '(a*)*b',
    '^(a|a)*$',
    '^(a|aa)+$',
    '(?:\\w+\\s?)*$',
    '^\\w+([.-]?\\w+)*@\\w+([.-]?\\w+)*(\\.\\w{2,3})+$',
    '^(?:[a-z]{1,10}){1,10}$',
    '^(a?a?)+$',
    '^(?=(x+x+)+y)x*$',
    '^(?<name>[^,]*,?)*$',
    '^(\\p{L}|\\p{N}+)*$',
    '^([\\u{61}-\\u{7a}]|[x\\-])+$',
    '^(.|\\n)*$',
  ])('refuses %s, which a text can be matched against in too many ways', (pattern) => {
    expect(() => new RegExp(pattern, 'u')).not.toThrow();
    expect(judgePattern(pattern).problem).toMatch(/several ways/);
  });

  it('refuses references back to a group', () => {
    expect(judgePattern('^(["\']).*\\1$').problem).toMatch(/refer back/);
    expect(judgePattern('^(?<quote>["\']).*\\k<quote>$').problem).toMatch(/refer back/);
  });

  it('refuses what is too large to be looked through', () => {
    expect(judgePattern(`^${'[a-z]x'.repeat(1_001)}$`).problem).toMatch(/longer than 2000/);
    expect(judgePattern(`^(?:${Array.from({ length: 500 }, (_, i) => `.${i}`).join('|')})*$`).problem).toMatch(/too involved|several ways/);
  });

  it.each([
    '^[a-z]+(-[a-z]+)*$',
    '^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$',
    '^([0-9A-Fa-f]{2})+$',
    '^(\\d{3}-){2}\\d{4}$',
    '^[\\w.+-]+@([\\w-]+\\.)+[\\w-]{2,}$',
    '^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}$',
    '^(?:EUR|USD|GBP)(?:,(?:EUR|USD|GBP))*$',
    '^\\s*\\S+\\s*$',
    '^.*foo.*$',
    '^[^\\s,]+(?:\\s*,\\s*[^\\s,]+)*$',
    '^https?://[^/?#]+(/[^/?#]*)*(\\?[^#]*)?$',
    '^(?!.*\\.\\.)[a-z.]{1,64}$',
    '^[\\]\\-a-c]*$',
    '^(?:ab|cd)*?$',
    '^[A-Z]{2}\\d{2}(?: ?[A-Z0-9]{4}){2,7}$',
    '\\bword\\b',
    '',
  ])('lets %s pass', (pattern) => {
    expect(() => new RegExp(pattern, 'u')).not.toThrow();
    expect(judgePattern(pattern).problem).toBeNull();
  });

  it('refuses groups without end', () => {
    expect(judgePattern(`${'('.repeat(10_000)}a${')'.repeat(10_000)}`).problem).toMatch(/so deep/);
  });

  it.each(['^[A-Za-z0-9+/]+={0,2}$', '^[a-z]+(-[a-z]+)*$', '^https?://[^/?#]+(/[^/?#]*)*(\\?[^#]*)?$', '^a|^b+$', '^$'])(
    'knows that %s is matched in one go',
    (pattern) => {
      expect(judgePattern(pattern)).toEqual({ problem: null, isLinear: true });
    },
  );

  it.each(['[0-9]+x', '^//[^/]+(/[^/?]*)*(\\?[^#]*)?$', '^.*a.*b$', '^\\s*\\s*$', '^(?=.*a).+$', '^a|b', '(?:^a)+', '^\\d+\\w+$', `^${'.*'.repeat(20)}$`])(
    'takes %s for a slow one',
    (pattern) => {
      expect(judgePattern(pattern)).toEqual({ problem: null, isLinear: false });
    },
  );
});
