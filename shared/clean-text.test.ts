import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cleanJson, cleanText } from './clean-text.ts';

describe('cleanText', () => {
  it.each([
    ['control characters', 'a\0b\x07c\x1b[31md\re\x7ff\x85g', 'abc[31mdefg'],
    ['changes of direction', 'a\u202eb\u2066c\u2069d', 'abcd'],
    ['tags, which spell invisible words', 'a\u{e0069}\u{e0067}b', 'ab'],
    ['halves of pairs', 'a\ud800b\udc00c', 'abc'],
    ['spaces of no width', 'a\u200bb\u2060c\ufeffd', 'abcd'],
    ['joiners between letters that don’t join', 'pass\u200dword\u200c', 'password'],
  ])('strips %s', (_what, text, cleaned) => {
    expect(cleanText(text)).toBe(cleaned);
  });

  it.each(['two\nlines\tand a tab', '👩‍💻 👨‍👩‍👧 🏳️‍🌈 👩🏽‍🚀', 'می‌خواهم', 'क्‍ष', 'a”b—c', '𝒜 𐍈'])('leaves %j unchanged', (text) => {
    expect(cleanText(text)).toBe(text);
  });

  it('composes letters and their accents', () => {
    expect(cleanText('e\u0301')).toBe('é');
  });

  it('changes nothing the second time', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const once = cleanText(text);
        expect(cleanText(once)).toBe(once);
      }),
    );
  });
});

describe('cleanJson', () => {
  it('cleans keys and texts and keeps the order', () => {
    expect(cleanJson({ 'b\u202e': 'x\u0007', a: [1, null, 'e\u0301'] })).toBe('{"b":"x","a":[1,null,"é"]}');
  });

  it('leaves no control character and no lone surrogate in a key, in any spelling, and nothing else out', () => {
    expect(cleanJson({ 'a\u0000\b\f\r\u001b\ud800b': 1, 'c\\u0000\\b"\n\t': 2 })).toBe('{"ab":1,"c\\\\u0000\\\\b\\"\\n\\t":2}');
  });

  it('keeps an escape apart from a mark behind it, with which its letter would become another', () => {
    const value = { 'a\n\u0331': 'b\t\u0323', 'e\u0301': 1 };
    expect(cleanJson(value)).toBe('{"a\\n\u0331":"b\\t\u0323","é":1}');
    expect(JSON.parse(cleanJson(value))).toEqual({ 'a\n\u0331': 'b\t\u0323', é: 1 });
  });

  it('stays JSON whatever the value holds', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
        expect(() => JSON.parse(cleanJson(value))).not.toThrow();
      }),
    );
  });

  it('is null for invalid JSON', () => {
    expect(cleanJson(undefined)).toBe('null');
  });
});
