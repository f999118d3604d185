import { expect, it } from 'vitest';
import { canSync } from './broker.mjs';

it.each([
  ['2.9.10', false],
  ['2.10.0', true],
  ['2.12.2', true],
  ['3.0.0', true],
  ['of unknown version', false],
])('nats-server %s can sync on each write: %s', (version, expected) => {
  expect(canSync(version)).toBe(expected);
});
