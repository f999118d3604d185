import { describe, expect, it } from 'vitest';
import { readProxies } from './proxies.ts';

const PROXY = 'http://proxy.internal:3128';

function hostOf(environment: Record<string, string>, url: string): string | null {
  return readProxies(environment)(new URL(url))?.host ?? null;
}

describe('the proxy of a URL', () => {
  it.each([
    ['is none without variables', {}, 'https://api.test', null],
    ['of http is HTTP_PROXY', { HTTP_PROXY: PROXY, HTTPS_PROXY: 'http://other:1' }, 'http://api.test', 'proxy.internal:3128'],
    ['of https is HTTPS_PROXY', { HTTP_PROXY: PROXY, HTTPS_PROXY: 'http://other:1' }, 'https://api.test', 'other:1'],
    ['of https is HTTP_PROXY when that is the only one', { HTTP_PROXY: PROXY, HTTPS_PROXY: '' }, 'https://api.test', 'proxy.internal:3128'],
    ['of http is never HTTPS_PROXY', { HTTPS_PROXY: PROXY }, 'http://api.test', null],
    ['may be named in lower case', { http_proxy: PROXY }, 'http://api.test', 'proxy.internal:3128'],
    ['is that of the upper-case name first, also when that is empty', { HTTP_PROXY: '', http_proxy: PROXY }, 'http://api.test', null],
    ['may be given without a scheme', { HTTP_PROXY: 'proxy.internal:3128' }, 'http://api.test', 'proxy.internal:3128'],
  ])('%s', (_, environment, url, host) => {
    expect(hostOf(environment, url)).toBe(host);
  });

  it.each(['http://localhost:11434', 'http://a.localhost', 'http://127.0.0.1:8080', 'http://127.1.2.3', 'http://[::1]:8080', 'https://localhost'])(
    'is none for %s: this machine is reached directly',
    (url) => {
      expect(hostOf({ HTTP_PROXY: PROXY }, url)).toBeNull();
    },
  );

  it.each([
    ['api.test', 'http://api.test', true],
    ['api.test', 'http://deep.api.test:81', true],
    ['api.test', 'http://other-api.test', false],
    ['.api.test', 'http://api.test', true],
    ['*.api.test', 'http://deep.api.test', true],
    ['API.Test', 'http://api.test', true],
    ['api.test:81', 'http://api.test:81', true],
    ['api.test:80', 'http://api.test', true],
    ['api.test:443', 'http://api.test', false],
    ['first.test, api.test', 'http://api.test', true],
    ['first.test api.test', 'http://api.test', true],
    ['*', 'http://api.test', true],
    ['10.1.2.3', 'http://10.1.2.3:8000', true],
    ['10.0.0.0/8', 'http://10.1.2.3:8000', true],
    ['10.0.0.0/8', 'http://11.1.2.3:8000', false],
    ['fd00::/8', 'http://[fd00::1]:8000', true],
    ['10.0.0.0/99', 'http://10.1.2.3:8000', false],
    ['', 'http://api.test', false],
  ])('with NO_PROXY=%s for %s: exempt %s', (NO_PROXY, url, isExempt) => {
    expect(hostOf({ HTTP_PROXY: PROXY, NO_PROXY }, url) === null).toBe(isExempt);
  });

  it.each(['http://', 'ftp://proxy.internal', 'http://user:secret@:99999'])('ends the start for %s, without repeating it', (HTTPS_PROXY) => {
    const expected = { code: 'config.invalid', message: 'HTTPS_PROXY is not the URL of a proxy' };
    expect(() => readProxies({ HTTPS_PROXY })).toThrow(expect.objectContaining(expected));
  });
});
