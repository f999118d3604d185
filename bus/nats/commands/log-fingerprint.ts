import type { LogPosition, StoredCommand } from '../../bus.ts';
import { hasFingerprint } from '../../position-fingerprint.ts';

/**
 * Distinguishes a purged position from a lost one. The command at a reader's position may be purged in good order, after the owner's cursor has passed other
 * partitions' commands. If the newest command that this process has seen of the whole log is still in its place, nothing before it was rolled back.
 */
export class LogFingerprint {
  #newest: { sequence: number; fingerprint: string } | null = null;
  #checks = 0;
  #restartedAt = 0;

  /** @param fingerprint the bare message id when the storage time is unknown */
  record(sequence: number, fingerprint: string): void {
    if (sequence > (this.#newest?.sequence ?? 0)) this.#newest = { sequence, fingerprint };
  }

  /** Returns the number of this check, for `confirms`. */
  nextCheck(): number {
    this.#checks += 1;
    return this.#checks;
  }

  /** The log was created anew: what was recorded is of the old one. */
  restarted(): void {
    this.#newest = null;
    this.#restartedAt = this.#checks;
  }

  /**
   * Whether a position without a command is of the current log.
   * @param checkedAt the check that last found the position or an earlier one; 0 for none: what was recorded may be of another log
   */
  async confirms({ sequence }: LogPosition, checkedAt: number, at: (sequence: number) => Promise<StoredCommand | null>): Promise<boolean> {
    const newest = this.#newest;
    if (newest === null || newest.sequence < sequence || checkedAt <= this.#restartedAt) return false;
    return hasFingerprint(await at(newest.sequence), newest.fingerprint);
  }
}
