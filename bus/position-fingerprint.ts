import type { StoredCommand } from './bus.ts';

/** Marks a fingerprint with a time. Older stored ones are the bare message id. */
const TIMED = /^@\d+ /;

/**
 * Identifies a command beyond its sequence. The message id alone is not enough: after a rollback the same command may be sent again and get the same
 * sequence, with other, unread commands below it.
 */
export function fingerprintOf({ messageId, storedAtMs }: Pick<StoredCommand, 'messageId' | 'storedAtMs'>): string {
  return `@${storedAtMs} ${messageId}`;
}

export function hasFingerprint(command: StoredCommand | null, fingerprint: string | null): boolean {
  if (command === null || fingerprint === null) return false;
  return fingerprint === (TIMED.test(fingerprint) ? fingerprintOf(command) : command.messageId);
}
