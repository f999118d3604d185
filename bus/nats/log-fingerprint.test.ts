import { describe, expect, it } from 'vitest';
import type { StoredCommand } from '../bus.ts';
import { LogWitness } from './log-fingerprint.ts';

/** A log whose commands are at the sequences given, with ids like `m7`. */
function logOf(...sequences: number[]): (sequence: number) => Promise<StoredCommand | null> {
  return async (sequence) => (sequences.includes(sequence) ? { sequence, messageId: `m${sequence}`, body: '', storedAtMs: sequence } : null);
}

const PURGED = { sequence: 3, mark: 'm3' };

describe('LogWitness', () => {
  it('vouches for nothing when it has seen nothing', async () => {
    const witness = new LogWitness();

    expect(await witness.vouchesFor(PURGED, witness.nextFinding(), logOf(9))).toBe(false);
  });

  it('vouches for a place before a command that still stands, and for none behind it', async () => {
    const witness = new LogWitness();
    const foundAt = witness.nextFinding();
    witness.note(9, 'm9');
    witness.note(5, 'm5');

    expect(await witness.vouchesFor(PURGED, foundAt, logOf(9))).toBe(true);
    expect(await witness.vouchesFor({ sequence: 10, mark: 'm10' }, foundAt, logOf(9))).toBe(false);
  });

  it('does not vouch when the newest command is gone, or another one stands in its place', async () => {
    const witness = new LogWitness();
    const foundAt = witness.nextFinding();
    witness.note(9, 'of a log that is gone');

    expect(await witness.vouchesFor(PURGED, foundAt, logOf(9))).toBe(false);
    expect(await witness.vouchesFor(PURGED, foundAt, logOf(5))).toBe(false);
  });

  it('does not vouch when the newest command stands in its place, but was stored anew', async () => {
    const witness = new LogWitness();
    const foundAt = witness.nextFinding();
    witness.note(9, '@8 m9');

    expect(await witness.vouchesFor(PURGED, foundAt, logOf(9))).toBe(false);
  });

  it('does not vouch for a place that this process never found: what it has seen may be of another log', async () => {
    const witness = new LogWitness();
    witness.note(9, 'm9');

    expect(await witness.vouchesFor(PURGED, 0, logOf(9))).toBe(false);
  });

  it('does not vouch for places of before a restart, but for those found since', async () => {
    const witness = new LogWitness();
    const before = witness.nextFinding();
    witness.note(9, 'm9');
    witness.nextFinding();
    witness.restarted();
    witness.note(4, 'm4');

    expect(await witness.vouchesFor(PURGED, before, logOf(4))).toBe(false);
    expect(await witness.vouchesFor(PURGED, witness.nextFinding(), logOf(4))).toBe(true);
  });
});
