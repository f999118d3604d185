import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { isSigned, type SignatureRule } from './signature.ts';

const BODY = Buffer.from('what do ya want for nothing?');
const SECRET = 'Jefe';
const RULE: SignatureRule = { header: 'X-Signature', algorithm: 'sha256', prefix: 'sha256=' };
const HEX = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';

function signed(value: string, { rule = RULE, secret = SECRET as string | null, body = BODY } = {}): boolean {
  return isSigned(body, ['Host', 'x', 'x-signature', value], rule, secret);
}

describe('a signature', () => {
  // RFC 2202 and RFC 4231, test case 2.
  it.each([
    ['sha256', HEX],
    ['sha1', 'effcdf6ae5eb2fa2d27416d5f184df9c259a7c79'],
    ['sha512', '164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737'],
  ] as const)('of %s is that of the RFC', (algorithm, hex) => {
    const rule = { ...RULE, algorithm, prefix: '' };

    expect(signed(hex, { rule })).toBe(true);
    expect(signed(`${hex.slice(0, -1)}0`, { rule })).toBe(false);
  });

  it.each([
    ['without its prefix', HEX],
    ['with another prefix', `sha512=${HEX}`],
    ['in upper case', `sha256=${HEX.toUpperCase()}`],
    ['that is cut off', `sha256=${HEX.slice(0, -1)}`],
    ['with something behind it', `sha256=${HEX}0`],
    ['that is empty', ''],
    ['twice in one header', `sha256=${HEX}, sha256=${HEX}`],
  ])('%s is refused', (_case, value) => {
    expect(signed(`sha256=${HEX}`)).toBe(true);
    expect(signed(value)).toBe(false);
  });

  it('is of every byte of the body, and of no text that is made of them', () => {
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x0d, 0x0a]);
    const hex = createHmac('sha256', SECRET).update(bytes).digest('hex');

    expect(signed(`sha256=${hex}`, { body: bytes })).toBe(true);
    expect(signed(`sha256=${hex}`, { body: Buffer.from(bytes.toString()) })).toBe(false);
  });

  it('may have a prefix beyond ASCII, whose bytes Node decodes as latin1', () => {
    const rule = { ...RULE, prefix: 'prüfung=' };

    expect(signed(`${Buffer.from('prüfung=').toString('latin1')}${HEX}`, { rule })).toBe(true);
  });

  it('is refused without a secret, whatever it is', () => {
    expect(signed(`sha256=${HEX}`, { secret: null })).toBe(false);
    expect(signed(`sha256=${createHmac('sha256', '').update(BODY).digest('hex')}`, { secret: null })).toBe(false);
  });

  it('is refused when its header is missing or repeated', () => {
    const value = `sha256=${HEX}`;

    expect(isSigned(BODY, ['X-SIGNATURE', value], RULE, SECRET)).toBe(true);
    for (const headers of [[], ['x-other', value], ['x-signature', value, 'X-Signature', value], ['x-signature', 'x', 'x-signature', value]])
      expect(isSigned(BODY, headers, RULE, SECRET)).toBe(false);
  });
});
