import { describe, expect, it } from 'vitest';
import type { StoredCommand } from '../../bus.ts';
import { LogFingerprint } from './log-fingerprint.ts';

/** A log with commands at these sequences, with ids like `m7`. */
function logOf(...sequences: number[]): (sequence: number) => Promise<StoredCommand | null> {
  return async (sequence) => (sequences.includes(sequence) ? { sequence, messageId: `m${sequence}`, body: '', storedAtMs: sequence } : null);
}

const PURGED = { sequence: 3, fingerprint: 'm3' };

describe('LogFingerprint', () => {
  it('confirms nothing when it has noted nothing', async () => {
    const fingerprint = new LogFingerprint();

    expect(await fingerprint.confirms(PURGED, fingerprint.nextCheck(), logOf(9))).toBe(false);
  });

  it('confirms a position before a command that still stands, and none behind it', async () => {
    const fingerprint = new LogFingerprint();
    const checkedAt = fingerprint.nextCheck();
    fingerprint.record(9, 'm9');
    fingerprint.record(5, 'm5');

    expect(await fingerprint.confirms(PURGED, checkedAt, logOf(9))).toBe(true);
    expect(await fingerprint.confirms({ sequence: 10, fingerprint: 'm10' }, checkedAt, logOf(9))).toBe(false);
  });

  it('confirms nothing when the newest command is gone, or another one has its sequence', async () => {
    const fingerprint = new LogFingerprint();
    const checkedAt = fingerprint.nextCheck();
    fingerprint.record(9, 'of a log that is gone');

    expect(await fingerprint.confirms(PURGED, checkedAt, logOf(9))).toBe(false);
    expect(await fingerprint.confirms(PURGED, checkedAt, logOf(5))).toBe(false);
  });

  it('confirms nothing when the newest command has its sequence, but was stored anew', async () => {
    const fingerprint = new LogFingerprint();
    const checkedAt = fingerprint.nextCheck();
    fingerprint.record(9, '@8 m9');

    expect(await fingerprint.confirms(PURGED, checkedAt, logOf(9))).toBe(false);
  });

  it('does not confirm a position that this process never found: what it has noted may be of another log', async () => {
    const fingerprint = new LogFingerprint();
    fingerprint.record(9, 'm9');

    expect(await fingerprint.confirms(PURGED, 0, logOf(9))).toBe(false);
  });

  it('does not confirm positions from before a restart, but those found since', async () => {
    const fingerprint = new LogFingerprint();
    const before = fingerprint.nextCheck();
    fingerprint.record(9, 'm9');
    fingerprint.nextCheck();
    fingerprint.restarted();
    fingerprint.record(4, 'm4');

    expect(await fingerprint.confirms(PURGED, before, logOf(4))).toBe(false);
    expect(await fingerprint.confirms(PURGED, fingerprint.nextCheck(), logOf(4))).toBe(true);
  });
});
