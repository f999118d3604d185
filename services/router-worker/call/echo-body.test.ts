import { expect, it } from 'vitest';
import { exactJson, parseExactly } from '../providers/exact-numbers.ts';
import { echoBody } from './echo-body.ts';

it('masks values under the name of a secret', () => {
  expect(echoBody({ api_key: 'sk-1', tools: [{ 'x-api-key': 'k', headers: { Authorization: 'Bearer t' } }], max_tokens: 5, stop: 'secret' })).toEqual({
    api_key: '[redacted]',
    tools: [{ 'x-api-key': '[redacted]', headers: { Authorization: '[redacted]' } }],
    max_tokens: 5,
    stop: 'secret',
  });
});

it('masks the bytes of files, and retains the text around them', () => {
  const long = 'a long text. '.repeat(2_000);
  const shown = echoBody([{ url: `data:image/png;base64,${'A'.repeat(400)}` }, { data: 'QUJD'.repeat(100) }, long]);
  expect(shown).toEqual([{ url: 'data:image/png,[redacted] (422 characters)' }, { data: '[redacted] (400 characters)' }, long]);
});

it('truncates deep nesting', () => {
  let deep: unknown = 'x';
  for (let level = 0; level < 100; level += 1) deep = [deep];
  expect(JSON.stringify(echoBody(deep)).length).toBeLessThan(120);
});

it('shows the numbers of arguments as they are sent, and masks what is secret beside them', () => {
  const [plain, secret] = [parseExactly('{"id":12345678901234567890,"list":[1.0]}'), parseExactly('{"id":1.0,"api_key":"sk-1"}')];
  expect(exactJson(echoBody([plain, secret]))).toBe('[{"id":12345678901234567890,"list":[1.0]},{"id":1,"api_key":"[redacted]"}]');
});
