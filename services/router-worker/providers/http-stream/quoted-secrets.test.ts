import { describe, expect, it, vi } from 'vitest';
import { keyMask } from './key-mask.ts';
import { withoutSecrets } from './quoted-secrets.ts';

vi.mock('./key-mask.ts', { spy: true });

describe('withoutSecrets', () => {
  it.each([
    ['no good: sk-1234', 'no good: [redacted]'],
    ['see https://user:pass@files.test/a/b?sig=abc#top for it', 'see https://files.test/a/b?[redacted] for it'],
    ['postgres://admin:hunter2@db.internal:5432/x', 'postgres://db.internal:5432/x'],
    ['https://token@files.test', 'https://files.test'],
    ['(https://files.test/a#key=1)', '(https://files.test/a#[redacted]'],
    ['{"url":"https:\\/\\/u:p@files.test\\/a?x=1"}', '{"url":"https:\\/\\/files.test\\/a?[redacted]"}'],
    ['POST /v1/chat?api-key=abc&version=2', 'POST /v1/chat?api-key=[redacted]&version=2'],
    ['see https://platform.test/docs/errors, please', 'see https://platform.test/docs/errors, please'],
    ['is it a key=value or a ratio of 3:4?', 'is it a key=value or a ratio of 3:4?'],
  ])('%s → %s', (text, expected) => {
    expect(withoutSecrets(text, 'sk-1234')).toBe(expected);
  });

  it('searches lists, objects and their names, and leaves the rest unchanged', () => {
    const error = { message: 'sk-1234', param: null, code: 7, inner: [{ 'sk-1234': 'https://a.test/?q=1' }] };
    expect(withoutSecrets(error, 'sk-1234')).toEqual({
      message: '[redacted]',
      param: null,
      code: 7,
      inner: [{ '[redacted]': 'https://a.test/?[redacted]' }],
    });
    expect(withoutSecrets(error, null)).toMatchObject({ message: 'sk-1234' });
  });

  it('builds the expressions for a key once, however many errors come', () => {
    vi.mocked(keyMask).mockClear();
    for (const key of ['sk-one-of-two', 'sk-two-of-two', 'sk-one-of-two', 'sk-two-of-two']) {
      expect(withoutSecrets(`no such key: ${key}`, key)).toBe('no such key: [redacted]');
    }
    expect(keyMask).toHaveBeenCalledTimes(2);
  });

  it('keeps the expressions of keys in use, however many other keys there were, and masks each of these', () => {
    vi.mocked(keyMask).mockClear();
    for (let number = 0; number < 300; number += 1) {
      expect(withoutSecrets(`no such key: sk-other-${number}`, `sk-other-${number}`)).toBe('no such key: [redacted]');
      expect(withoutSecrets('no such key: sk-in-use', 'sk-in-use')).toBe('no such key: [redacted]');
    }
    expect(vi.mocked(keyMask).mock.calls.filter(([key]) => key === 'sk-in-use')).toHaveLength(1);
    expect(withoutSecrets('no such key: sk-other-0', 'sk-other-0')).toBe('no such key: [redacted]');
    for (let again = 0; again < 3; again += 1) withoutSecrets('no such key', 'sk-new');
    expect(vi.mocked(keyMask).mock.calls.filter(([key]) => key === 'sk-new')).toHaveLength(1);
  });

  it('truncates deep nesting', () => {
    let deep: unknown = 'https://a.test/?q=1';
    for (let level = 0; level < 10_000; level += 1) deep = [deep];
    expect(JSON.stringify(withoutSecrets(deep, null))).toContain('…');
  });

  it('is fast for a long text that only looks like an address', () => {
    const before = process.cpuUsage();
    withoutSecrets(`https://${'a'.repeat(64 * 1024)} ${'?key'.repeat(16 * 1024)}`, null);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(4_000);
  });
});
