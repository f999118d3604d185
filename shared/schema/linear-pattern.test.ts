import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LinearPattern, linearPattern } from './linear-pattern.ts';

function compiled(pattern: string): LinearPattern {
  const linear = linearPattern(pattern, 'u');
  if ('problem' in linear) throw new Error(`${pattern} ${linear.problem}`);
  return linear;
}

function problemOf(pattern: string): string | null {
  const linear = linearPattern(pattern, 'u');
  return 'problem' in linear ? linear.problem : null;
}

/** Characters on which the two syntaxes differ, or at the edge of a class. */
const CHARACTERS = [
  ...'abcxyzABC019_-.,:;/[]^$ @',
  '\n',
  '\r',
  '\t',
  '\v',
  '\0',
  '\u00a0',
  '\u2028',
  '\u2029',
  '\ufeff',
  'é',
  'ß',
  'Ω',
  '漢',
  '😀',
  '\ud83d',
  '\ude00',
];

describe('linearPattern', () => {
  it.each([
    ['(', /regular expression/],
    ['[[:alpha:]]', /regular expression/],
    ['\\Q', /regular expression/],
    ['^(?!admin)[a-z]+$', /look ahead or behind/],
    ['a(?=b)', /look ahead or behind/],
    ['(?<=a)b', /look ahead or behind/],
    ['(?<!a)b', /look ahead or behind/],
    ['^(["\']).*\\1$', /refer back/],
    ['^(?<quote>["\']).*\\k<quote>$', /refer back/],
    ['\\p{Emoji}', /\\p\{Emoji\}/],
    ['\\p{Script=Grek}', /\\p\{Script=Grek\}/],
    ['(?:a{1000}){1000}', /more than 1000/],
    ['(?:a{30}){40}', /more than 1000/],
    ['a{1001}', /more than 1000/],
    ['(?:(?:\\b){1000}){1000}', /more than 1000/],
    [`${'('.repeat(200)}a${')'.repeat(200)}`, /so deep/],
    ['a|'.repeat(2_100), /longer than 4096/],
  ])('refuses %s', (pattern, complaint) => {
    expect(problemOf(pattern)).toMatch(complaint);
  });

  it.each([
    '\\s',
    '\\S',
    '[\\s]',
    '[\\S]',
    '[^\\s]',
    '[^\\S]',
    '.',
    '^.$',
    '\\w',
    '\\W',
    '[^\\w]',
    '[\\W_]',
    '\\d',
    '\\D',
    '\\bA',
    'A\\B',
    '[\\b]',
    'a$',
    '^a',
    '$^',
    'a|^b$|',
    '[]',
    '[^]',
    '[^]{2}',
    'a[]|b',
    '[[a]',
    '[[:word:][a]',
    '[a-c-]',
    '[\\]\\-a]',
    '[\\d-]',
    '\\u0041',
    '[\\u0041-\\u0043]',
    '\\ud83d\\ude00',
    '^[\\ud83d\\ude00]$',
    '\\ud83d',
    '\\ude00',
    '\\u{1F600}',
    '😀',
    '^😀{1}$',
    '[😀-😂]',
    '\\x41',
    '\\cJ',
    '\\0',
    '\\t|\\v|\\f',
    '\\/',
    '\\.',
    '\\^\\$',
    '(?<year>a)b',
    '(?:a*?b??)+?c',
    '(a|b){2,3}',
    '^a{2,}$',
    '^(?:a?){3}$',
    '(?:)*',
    '(?:^|,)a(?:$|,)',
    '\\p{L}',
    '\\P{L}',
    '[\\p{Lu}\\p{Nd}]',
    '^[^\\p{L}]$',
    '\\p{Letter}',
    '\\p{gc=Lowercase_Letter}',
    '\\p{General_Category=Nd}',
    '\\p{Script=Greek}',
    '\\p{ASCII}',
    '\\p{Any}',
    '^.{2}$',
    '^[^]{1,3}$',
    '^[a-c\\]]{2,}$',
    '^\\w{0,2}?$',
    '^\\S{1,1}$',
  ])('%s matches what it matches in JavaScript', (pattern) => {
    const native = new RegExp(pattern, 'u');
    const { test } = compiled(pattern);
    const text = fc.array(fc.constantFrom(...CHARACTERS), { maxLength: 6 }).map((characters) => characters.join(''));

    for (const one of ['', ...CHARACTERS, ...CHARACTERS.map((character) => character + character)]) expect([one, test(one)]).toEqual([one, native.test(one)]);
    fc.assert(fc.property(text, (some) => test(some) === native.test(some)));
  });

  it('matches what JavaScript does, for expressions of any shape', () => {
    const atoms = fc.constantFrom('a', 'b', '.', '\\s', '\\w', '[ab]', '[^a]', '\\b', '^', '$', '\\u0062', '-', '\\.');
    const { expression } = fc.letrec<{ expression: string }>((tie) => ({
      expression: fc.oneof(
        { maxDepth: 4 },
        atoms,
        fc.tuple(tie('expression'), tie('expression')).map(([left, right]) => `${left}${right}`),
        fc.tuple(tie('expression'), tie('expression')).map(([left, right]) => `(?:${left}|${right})`),
        fc.tuple(tie('expression'), fc.constantFrom('*', '+', '?', '{2}', '{1,3}', '{0,2}?', '{2,}')).map(([body, quantifier]) => `(${body})${quantifier}`),
      ),
    }));
    const texts = fc.array(
      fc.array(fc.constantFrom('a', 'b', 'c', '.', '-', ' ', '\n'), { maxLength: 5 }).map((characters) => characters.join('')),
      { minLength: 5, maxLength: 10 },
    );

    fc.assert(
      fc.property(expression, texts, (pattern, some) => {
        const native = new RegExp(pattern, 'u');
        const { test } = compiled(pattern);
        for (const text of some) expect([pattern, text, test(text)]).toEqual([pattern, text, native.test(text)]);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    '(a*)*b',
    '^(a|a)*$',
    '^(a|aa)+$',
    '^\\w+([.-]?\\w+)*@\\w+([.-]?\\w+)*(\\.\\w{2,3})+$',
    '^(?:[a-z]{1,10}){1,10}$',
    '^(\\p{L}|\\p{N}+)*$',
    '^(.|\\n)*$',
    '^[a-z]+(-[a-z]+)*$',
    '^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$',
    '^[\\w.+-]+@([\\w-]+\\.)+[\\w-]{2,}$',
    '^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z]{2,}$',
    '^https?://[^/?#]+(/[^/?#]*)*(\\?[^#]*)?$',
    '^[A-Z]{2}\\d{2}(?: ?[A-Z0-9]{4}){2,7}$',
    `^${'.*'.repeat(20)}$`,
    '^.{1,4000}$',
    '',
  ])('takes %s', (pattern) => {
    expect(problemOf(pattern)).toBeNull();
  });

  it.each([
    ['^(a+)+$', `${'a'.repeat(50_000)}!`],
    ['^\\S+@\\S+\\.\\S+$', `${'@.'.repeat(2_047)} `],
    [`^${'(?:.|\\w)'.repeat(25)}b$`, 'a'.repeat(26)],
    [`^${'(?:.|\\w)'.repeat(25)}b$`, `${'a'.repeat(26)}\n`],
  ])('ends with %s, which a search way by way does not come to the end of', (pattern, text) => {
    expect(compiled(pattern).test(text)).toBe(false);
  });

  it('counts the repetitions of a class by characters, not by halves of them', () => {
    const { test, stepsFor } = compiled('^[^a]{2000,4000}$');

    expect(['😀'.repeat(1_999), '😀'.repeat(2_000), '😀'.repeat(4_000), '😀'.repeat(4_001)].map(test)).toEqual([false, true, true, false]);
    expect(test(`${'b'.repeat(3_000)}a`)).toBe(false);
    expect(stepsFor(4_000)).toBeLessThan(10_000);
  });

  it('counts a step and a half for a character where one look-up finds the next state, and more for each concurrent state', () => {
    expect(compiled('^[a-z]+(-[a-z]+)*$').stepsFor(1_000_000)).toBeLessThan(1_600_000);
    expect(compiled('^\\S+@\\S+\\.\\S+$').stepsFor(1_000_000)).toBeLessThan(1_600_000);
    expect(compiled('[ab]*a[ab]{900}[cd]').stepsFor(1_000)).toBeGreaterThan(1_000_000);
  });
});
