import { describe, expect, it } from 'vitest';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { maskUrl, redactSecrets } from './redact.ts';

/** For one text. Linear time takes milliseconds, quadratic time minutes. */
const MAX_CPU_MS = 4_000;

describe('redactSecrets', () => {
  it.each([
    'apiKey',
    'api_key',
    'API_KEY',
    'x-api-key',
    'client_secret',
    'houseSecret',
    'db_password',
    'PASSPHRASE',
    'access_token',
    'Authorization',
    'set-cookie',
    'credentials',
    'private_key',
  ])('masks whatever stands under %s, at any depth', (key) => {
    const masked = redactSecrets({ outer: [{ [key]: 'hush' }, { [key]: { inner: 'hush' } }, { [key]: ['hush'] }, { [key]: 7 }] });

    expect(masked).toEqual({ outer: [{ [key]: '[redacted]' }, { [key]: '[redacted]' }, { [key]: '[redacted]' }, { [key]: '[redacted]' }] });
  });

  it('shows that a secret is not set, and how many tokens were used', () => {
    const value = { api_key: null, prompt_tokens: 12, maxTokens: 0 };

    expect(redactSecrets({ ...value, password: undefined })).toEqual(value);
    expect(redactSecrets({ tokens: ['hush'] })).toEqual({ tokens: '[redacted]' });
  });

  it('masks the credentials of URLs in texts and URL objects', () => {
    expect(redactSecrets({ database: 'postgres://user:hush@db:5432/app', link: new URL('nats://me:hush@bus:4222') })).toEqual({
      database: 'postgres://[redacted]@db:5432/app',
      link: 'nats://[redacted]@bus:4222',
    });
  });

  it('shows an error with its code, its details and its whole chain of causes, secrets masked in each', () => {
    const socket = Object.assign(new Error('connect ECONNREFUSED redis://:hush@cache'), { code: 'ECONNREFUSED' });
    const middle = new Error('the cache did not answer', { cause: socket });
    const outer = new SwitchyardError('service.not_ready', 'can not start', { cause: middle, details: { token: 'hush', port: 6379 } });

    const shown = redactSecrets({ err: outer });

    expect(shown).toMatchObject({
      err: {
        name: 'SwitchyardError',
        code: 'service.not_ready',
        message: 'can not start',
        details: { token: '[redacted]', port: 6379 },
        stack: expect.stringContaining('redact.test.ts'),
        causes: [
          { name: 'Error', message: 'the cache did not answer' },
          { name: 'Error', code: 'ECONNREFUSED', message: 'connect ECONNREFUSED redis://[redacted]@cache' },
        ],
      },
    });
    expect(JSON.stringify(shown)).not.toContain('hush');
  });

  it('shows causes that are not errors, the errors of an aggregate, and not the other fields of an error', () => {
    const error = Object.assign(new AggregateError([new TypeError('one')], 'all failed', { cause: 'a text' }), { request: { body: 'private' } });

    const shown = redactSecrets(error);

    expect(shown).toMatchObject({ message: 'all failed', errors: [{ name: 'TypeError', message: 'one' }], causes: ['a text'] });
    expect(shown).not.toHaveProperty('request');
  });

  it('shows nothing of a text that a parser could not read', () => {
    const errorOf = (text: string) => {
      try {
        return JSON.parse(text);
      } catch (error) {
        return error;
      }
    };
    for (const text of ['hush', '{"a":1} "hush"', '{"hush":hush}', `{"a":"hush`]) {
      const shown = JSON.stringify(redactSecrets(new Error('could not read', { cause: errorOf(text) })));
      expect(shown).toContain('SyntaxError');
      expect(shown).not.toContain('hush');
    }
  });

  it.each(['hush\nhush', 'hush\u0000hush', '"hush"\n'])('shows nothing of a key that fetch quotes, since no header can carry it: %j', async (key) => {
    const refused = await fetch('http://127.0.0.1:9', { headers: { authorization: `Bearer ${key}x` } }).catch((error: unknown) => error);
    const shown = JSON.stringify(redactSecrets(new Error('not sent', { cause: refused })));
    expect(shown).toContain('is an invalid header value');
    expect(shown).not.toContain('hush');
  });

  it('truncates cycles, endless chains of causes, depth, size and length', () => {
    const circle: Record<string, unknown> = { name: 'circle' };
    circle.self = circle;
    const first = new Error('first');
    first.cause = new Error('second', { cause: first });
    let deep: unknown = 'bottom';
    for (let level = 0; level < 50; level += 1) deep = { deep };

    expect(redactSecrets(circle)).toEqual({ name: 'circle', self: '[circular]' });
    expect(redactSecrets(first)).toHaveProperty('causes.length', 8);
    expect(JSON.stringify(redactSecrets(deep))).toContain('[too deep]');
    expect(JSON.stringify(redactSecrets(Array.from({ length: 100_000 }, () => 1))).length).toBeLessThan(3_000);
    expect(JSON.stringify(redactSecrets({ text: 'x'.repeat(1_000_000) })).length).toBeLessThan(9_000);
  });

  it('shows the same object twice where it stands twice', () => {
    const shared = { a: 1 };
    expect(redactSecrets([shared, shared])).toEqual([{ a: 1 }, { a: 1 }]);
  });

  it('converts everything to what JSON can hold, and leaves the original unchanged', () => {
    const value = {
      at: new Date(0),
      never: new Date(Number.NaN),
      big: 12n,
      bytes: Buffer.from('hush'),
      map: new Map([['key', 'hush']]),
      call: () => 'hush',
      sign: Symbol('sign'),
      password: 'hush',
    };

    expect(redactSecrets(value)).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      never: '[invalid date]',
      big: '12',
      bytes: '[4 bytes]',
      map: '[1 entries]',
      call: '[function]',
      sign: 'Symbol(sign)',
      password: '[redacted]',
    });
    expect(value.password).toBe('hush');
  });

  it('does not let a key named __proto__ change the copy', () => {
    const shown = redactSecrets(JSON.parse('{"__proto__":{"polluted":true}}'));

    expect(Object.keys(shown ?? {})).toEqual(['__proto__']);
    expect(shown).not.toHaveProperty('polluted', true);
  });
});

describe('maskUrl', () => {
  it.each([
    ['https://user:hush@host/path', 'https://[redacted]@host/path'],
    ['https://hush@host', 'https://[redacted]@host'],
    ['redis://:hu@sh@host:6379/0', 'redis://[redacted]@host:6379/0'],
    ['postgres+ssl://u:hush@one, nats://u:hush@two', 'postgres+ssl://[redacted]@one, nats://[redacted]@two'],
    ['GET https://host/v1beta/models?alt=sse&key=hush failed', 'GET https://host/v1beta/models?alt=sse&key=[redacted] failed'],
    ['/callback?access_token=hush#top', '/callback?access_token=[redacted]#top'],
  ])('masks %s', (text, masked) => {
    expect(maskUrl(text)).toBe(masked);
  });

  it.each(['https://host/@scope/name', 'mail me@example.org', 'https://host/?monkey=1&q=a@b', 'a plain text'])('leaves %s as it is', (text) => {
    expect(maskUrl(text)).toBe(text);
  });

  it.each(['a'.repeat(200_000).concat('://'), '://'.repeat(70_000), '?'.repeat(200_000).concat('='), '?token'.repeat(40_000).concat('=')])(
    'takes a moment only, whatever the text',
    (text) => {
      const before = process.cpuUsage();
      maskUrl(text);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1_000).toBeLessThan(MAX_CPU_MS);
    },
  );
});
