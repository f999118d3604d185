import type { StoredCommand } from './bus.ts';

/** Prefix of a fingerprint with a time; no message id of ours has it. Older stored fingerprints are the message id alone and are compared as such. */
const TIMED = /^@\d+ /;

/**
 * Identifies a command of the log beyond its sequence. The message id alone is not enough: in a log that was rolled back, the same command may be sent again
 * and get the same sequence, with other, unread commands below it.
 */
export function fingerprintOf({ messageId, storedAtMs }: Pick<StoredCommand, 'messageId' | 'storedAtMs'>): string {
  return `@${storedAtMs} ${messageId}`;
}

export function hasFingerprint(command: StoredCommand | null, fingerprint: string | null): boolean {
  if (command === null || fingerprint === null) return false;
  return fingerprint === (TIMED.test(fingerprint) ? fingerprintOf(command) : command.messageId);
}
