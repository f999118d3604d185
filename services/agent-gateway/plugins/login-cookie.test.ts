import fc from 'fast-check';
import { expect, it } from 'vitest';
import { cookieValues, loginCookie } from './login-cookie.ts';

it('any key comes back as it was, and ends no cookie and no header', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), (key) => {
      fc.pre(Buffer.from(key).toString() === key);
      const [pair = ''] = loginCookie(key, 'agent.example').split('; ');
      expect(pair).toMatch(/^agent_auth=[\x21-\x7e]*$/);
      expect(pair).not.toMatch(/[;,"\\]/);
      expect(cookieValues(`a=b; ${pair}; c=d`, 'agent_auth').map(String)).toEqual([key]);
    }),
  );
});

it('characters that a cookie may not have are encoded', () => {
  expect(loginCookie('a;b"c\\d%e\x7fé ', 'agent.example')).toMatch(/^agent_auth=a%3Bb%22c%5Cd%25e%7F%C3%A9%20; /);
});

it('a key of letters, digits and the signs of base64 stands in it as it is', () => {
  expect(loginCookie('sk-a_B9+/=', 'agent.example')).toMatch(/^agent_auth=sk-a_B9\+\/=; /);
});
