import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { nodeSatisfies } from './node-version.mjs';

it('throws on an unreadable range instead of accepting every version', () => {
  expect(() => nodeSatisfies('20.20.2', '20.x')).toThrow(/engines\.node '20\.x'/);
  expect(() => nodeSatisfies('20.20.2', '')).toThrow(/engines\.node/);
});

it.each([
  ['18.20.8', '>=20.19', false],
  ['20.18.3', '>=20.19', false],
  ['20.19.0', '>=20.19', true],
  ['20.9.0', '>=20.19', false],
  ['24.0.0', '>=20.19', true],
  ['21.7.3', '^20.19.0 || >=22.12.0', false],
  ['22.11.0', '^20.19.0 || >=22.12.0', false],
  ['20.19.1', '^20.19.0 || >=22.12.0', true],
  ['22.12.0', '^20.19.0 || >=22.12.0', true],
  ['24.1.0-nightly', '^20.19.0 || >=22.12.0', true],
])('says of Node %s and %s: %s', (version, range, fits) => {
  expect(nodeSatisfies(version, range)).toBe(fits);
});

it.each([
  ['20.18.3', false],
  ['20.19.0', true],
  // Before 22.12 there is no require() of ES modules, which a package of the HTTP server needs.
  ['21.7.3', false],
  ['22.11.0', false],
  ['22.12.0', true],
  // The test runner does not support it.
  ['23.11.1', false],
  ['24.0.0', true],
  ['26.0.0', true],
])('runs on Node %s as its packages do: %s', (version, runs) => {
  const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  expect(nodeSatisfies(version, engines.node)).toBe(runs);
});

it('has the same range in the lock file', () => {
  const [own, lock] = ['package.json', 'package-lock.json'].map((name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8')));
  expect(lock.packages[''].engines).toEqual(own.engines);
});
