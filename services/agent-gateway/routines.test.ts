import { expect, it } from 'vitest';
import { triggerableRoutines } from './routines.ts';
import { bundleWith } from './test-support/bundle.ts';

const SETTINGS = { defaultTimeoutMs: 120_000, maxTimeoutMs: 600_000, requireCallbackAllowlist: false };

it('refuses a routine whose results may go anywhere, where that is not allowed', () => {
  const settings = { ...SETTINGS, requireCallbackAllowlist: true };
  const names = expect.objectContaining({ code: 'config.invalid', message: expect.stringContaining('"open"') });

  expect(() => triggerableRoutines(bundleWith({ id: 'open' }), settings)).toThrow(names);
  expect(() => triggerableRoutines(bundleWith({ id: 'open', callback_url_allowlist: [] }), settings)).toThrow(names);
  expect(triggerableRoutines(bundleWith({ id: 'closed', callback_url_allowlist: ['example.com'] }, { id: 'off', enabled: false }), settings).size).toBe(1);
});

it('refuses an invalid input schema', () => {
  const bundle = bundleWith({ id: 'triage' });
  const [routine] = bundle.body.documents.routines;
  if (routine?.kind === 'autonomous') routine.input_schema = { type: 'shape' };

  expect(() => triggerableRoutines(bundle, SETTINGS)).toThrow(expect.objectContaining({ code: 'config.invalid' }));
});

it.each([
  ['none', {}, 120_000],
  ['a short one', { timeout_seconds: 0.25 }, 250],
  ['one that is shorter than a millisecond', { timeout_seconds: 0.0001 }, 1],
  ['one that is no whole number of milliseconds', { timeout_seconds: 1.0006 }, 1_001],
  ['the longest', { timeout_seconds: 600 }, 600_000],
  ['one that is too long', { timeout_seconds: 601 }, 600_000],
])('converts the time limit %s of a routine to milliseconds', (_case, fields, timeoutMs) => {
  expect(triggerableRoutines(bundleWith({ id: 'triage', ...fields }), SETTINGS).get('triage')?.timeoutMs).toBe(timeoutMs);
});

it('bounds the default time of routines too', () => {
  expect(triggerableRoutines(bundleWith({ id: 'triage' }), { ...SETTINGS, maxTimeoutMs: 5_000 }).get('triage')?.timeoutMs).toBe(5_000);
});

it('uses the first of several versions, as the run does', () => {
  const bundle = bundleWith({ id: 'triage', timeout_seconds: 1 }, { id: 'triage', version: 2, timeout_seconds: 2 });

  expect(triggerableRoutines(bundle, SETTINGS).get('triage')?.timeoutMs).toBe(1_000);
});
