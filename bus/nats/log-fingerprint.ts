import type { LogPosition, StoredCommand } from '../bus.ts';
import { hasFingerprint } from '../position-fingerprint.ts';

/**
 * Tells a purged position from a lost one. The command at a reader's position may be purged normally, after the partition's owner has advanced its cursor
 * over other partitions' commands. So this process remembers the newest command of the whole log that any of its readers or appends has seen. If it is still
 * in its place, nothing before it was rolled back.
 */
export class LogFingerprint {
  #newest: { sequence: number; fingerprint: string } | null = null;
  #findings = 0;
  #restartedAt = 0;

  /** Notes a command of the log. @param fingerprint the bare message id where the storage time is not known */
  note(sequence: number, fingerprint: string): void {
    if (sequence > (this.#newest?.sequence ?? 0)) this.#newest = { sequence, fingerprint };
  }

  /** Returns the number of this check of a position, for `confirms`. */
  nextFinding(): number {
    this.#findings += 1;
    return this.#findings;
  }

  /** The log was created anew: what was noted belongs to the old one. */
  restarted(): void {
    this.#newest = null;
    this.#restartedAt = this.#findings;
  }

  /**
   * Whether a position whose command is gone belongs to the current log.
   * @param foundAt the check at which the position, or one before it, was last found; 0 for never in this process: the noted command may then be of another
   * log than the position
   * @param at looks up a command
   */
  async confirms({ sequence }: LogPosition, foundAt: number, at: (sequence: number) => Promise<StoredCommand | null>): Promise<boolean> {
    const newest = this.#newest;
    if (newest === null || newest.sequence < sequence || foundAt <= this.#restartedAt) return false;
    return hasFingerprint(await at(newest.sequence), newest.fingerprint);
  }
}
