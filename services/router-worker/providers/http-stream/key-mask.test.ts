import { describe, expect, it } from 'vitest';
import { keyMask } from './key-mask.ts';
import { withoutSecrets } from './quoted-secrets.ts';

const KEY = 'sk-proj/Ab+c_1234=Z"9';
const mask = keyMask(KEY, '[redacted]');

function percentEncoded(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
}
function unicodeEscaped(text: string): string {
  return [...text].map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
}
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('a key in a text', () => {
  it.each([
    ['as it is', KEY],
    ['percent-encoded where it must be', encodeURIComponent(KEY)],
    ['percent-encoded throughout', percentEncoded(KEY)],
    ['in capital digits', percentEncoded(KEY).toUpperCase()],
    ['percent-encoded twice', encodeURIComponent(encodeURIComponent(KEY))],
    ['with the escapes of JSON', JSON.stringify(KEY).slice(1, -1)],
    ['with an escaped slash', KEY.replaceAll('/', '\\/')],
    ['in a JSON text in a JSON text', JSON.stringify(JSON.stringify(KEY).slice(1, -1)).slice(1, -1).replaceAll('/', '\\\\/')],
    ['with code points for letters', unicodeEscaped(KEY)],
    ['with the code point of a slash alone', KEY.replaceAll('/', '\\u002F')],
  ])('is masked %s', (_, quoted) => {
    expect(mask(`bad key "${quoted}" given`)).toBe('bad key "[redacted]" given');
  });

  it.each(['', 'u', 'us', 'user:', 'a long name:'])('is masked in base64 behind "%s", padded or not, URL-safe or not, with anything behind it', (before) => {
    for (const behind of ['', '.', '??', ', and more']) {
      const encoded = base64(before + KEY + behind);
      const forms = [
        encoded,
        encoded.replaceAll('=', ''),
        encoded.replaceAll('+', '-').replaceAll('/', '_'),
        encodeURIComponent(encoded),
        encoded.replaceAll('/', '\\/'),
      ];
      for (const form of forms) expect(mask(`got: Basic ${form}`), form).toBe('got: Basic [redacted]');
      // A run may hold more than base64.
      for (const word of ['v1/', 'token_', 'x']) expect(mask(`at ${word}${encoded}!`)).toBe('at [redacted]!');
    }
  });

  it('is masked in base64 when it is short, and when it is very long', () => {
    expect(keyMask('key', '*')('Basic dXNlcjprZXk=')).toBe('Basic *');
    const long = `eyJ${'x1Y'.repeat(1_000)}`;
    expect(keyMask(long, '*')(`bad ${long}, sorry; ${base64(`u:${long}`)}`)).toBe('bad *, sorry; *');
  });

  it('leaves other texts unchanged', () => {
    for (const text of ['sk-proj/Ab+c_1234', base64('another user:sk-other-key-of-theirs'), 'https://platform.test/docs/errors', '100% \\o/ %zz \\u00'])
      expect(mask(text)).toBe(text);
    expect(keyMask('a\\\\b', '*')('a\\\\b a\\\\\\\\b ab')).toBe('* * ab');
  });

  it('is masked by the whole of it, in names and values of an error', () => {
    const error = { message: `Incorrect API key: ${encodeURIComponent(KEY)}`, headers: { authorization: `Basic ${base64(`user:${KEY}`)}` } };

    expect(withoutSecrets(error, KEY)).toEqual({ message: 'Incorrect API key: [redacted]', headers: { authorization: 'Basic [redacted]' } });
  });
});

it.each([
  ['base64 without end', 'QUJD'],
  ['backslashes', '\\'],
  ['percent signs', '%25'],
  ['beginnings of the key', KEY.slice(0, -1)],
  ['escapes', '\\\\u0041'],
])('takes time in proportion to a text of %s', (_, unit) => {
  const text = unit.repeat(Math.ceil((256 * 1024) / unit.length));
  const before = process.cpuUsage();
  mask(text);
  const { user, system } = process.cpuUsage(before);

  // About 50 ms; quadratic matching would take minutes.
  expect((user + system) / 1_000).toBeLessThan(5_000);
});
