import type { StoredCommand } from './bus.ts';

/** What a mark begins with. No message id of ours does: one that was kept before marks had a time is compared as it is. */
const TIMED = /^@\d+ /;

/**
 * What tells a command of the log from any other that may ever stand at its sequence, for whoever keeps a place. Its message id alone does
 * not: in a log that was rolled back, and to which the command was sent again, it may come to stand where it stood before, with other
 * commands below it that nobody has read.
 */
export function fingerprintOf({ messageId, storedAtMs }: Pick<StoredCommand, 'messageId' | 'storedAtMs'>): string {
  return `@${storedAtMs} ${messageId}`;
}

/** Whether it is the command that the mark was made of. */
export function hasFingerprint(command: StoredCommand | null, fingerprint: string | null): boolean {
  if (command === null || fingerprint === null) return false;
  return fingerprint === (TIMED.test(fingerprint) ? fingerprintOf(command) : command.messageId);
}
