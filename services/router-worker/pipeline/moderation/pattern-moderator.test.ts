import { expect, it } from 'vitest';
import { ItemAbortController } from '#services/work/item-signal.ts';
import { patternModerator } from './pattern-moderator.ts';

const moderatorOf = (...patterns: string[]) => patternModerator(patterns.map((pattern) => ({ reason: pattern, pattern, ignore_case: false })));
const flaggedIn = (texts: string[], ...patterns: string[]) => moderatorOf(...patterns)(texts, new ItemAbortController(), 'input');

it('flags the first text that matches, with the reasons of all patterns that match it', async () => {
  expect(await flaggedIn(['fine', 'card 4111 of Ada', 'Ada'], '\\d{4}', '^Ada$', 'Ada')).toEqual({ text: 'card 4111 of Ada', reasons: ['\\d{4}', 'Ada'] });
  expect(await flaggedIn(['fine'], '\\d{4}')).toBeNull();
});

it('reads upper and lower case alike where a pattern says so', async () => {
  const moderator = patternModerator([{ reason: 'r', pattern: '[a-z]{3}ß', ignore_case: true }]);
  expect(await moderator(['ABCß'], new ItemAbortController(), 'input')).toMatchObject({ reasons: ['r'] });
  expect(await flaggedIn(['ABCß'], '[a-z]{3}ß')).toBeNull();
});

it('refuses texts that take longer than its bounds, and lets none pass unread', async () => {
  const limits = { perMatch: 4_000, inAll: 10_000, atOnce: 1_000 };
  const check = (texts: string[]) => patternModerator([{ reason: 'r', pattern: 'y', ignore_case: false }], limits)(texts, new ItemAbortController(), 'input');
  expect(await check(['x'.repeat(2_000)])).toBeNull();
  await expect(check(['x'.repeat(4_000)])).rejects.toMatchObject({ code: 'request.too_large', details: { param: 'input' } });
  await expect(check(Array.from({ length: 5 }, (_, at) => `${at}${'x'.repeat(2_000)}`))).rejects.toMatchObject({ code: 'request.too_large' });
});

it('ends when the call is aborted', async () => {
  const controller = new ItemAbortController();
  const checking = moderatorOf('y')(
    Array.from({ length: 100 }, () => 'x'.repeat(100_000)),
    controller,
    'input',
  );
  controller.abort(new Error('left'));
  await expect(checking).rejects.toThrow('left');
});
