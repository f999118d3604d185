import { expect, it } from 'vitest';
import { counted } from './texts.ts';

it.each([
  [0, '0 tries'],
  [1, '1 try'],
  [2, '2 tries'],
])('counts %i for people', (count, text) => {
  expect(counted(count, 'try', 'tries')).toBe(text);
});
