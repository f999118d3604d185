import type { LogPosition, StoredCommand } from '../bus.ts';
import { hasFingerprint } from '../position-fingerprint.ts';

/**
 * Tells a place that was purged from one that was lost. The command at a reader's place may be gone in good order: the reader's owner has
 * moved its cursor on over other partitions' commands, and a purge has followed. So this process keeps in mind the newest command that
 * it has seen of the whole log, whoever saw it. If that one still stands in its place, nothing before it was rolled back.
 */
export class LogFingerprint {
  #newest: { sequence: number; fingerprint: string } | null = null;
  #findings = 0;
  #restartedAt = 0;

  /** A command was seen at its place in the log. @param fingerprint or its message id, where the time at which it was stored is not known */
  note(sequence: number, fingerprint: string): void {
    if (sequence > (this.#newest?.sequence ?? 0)) this.#newest = { sequence, fingerprint };
  }

  /** A place was looked for. Returns the number of this look, for `confirms`. */
  nextFinding(): number {
    this.#findings += 1;
    return this.#findings;
  }

  /** The log has begun anew: what was seen of the old one means nothing. */
  restarted(): void {
    this.#newest = null;
    this.#restartedAt = this.#findings;
  }

  /**
   * Whether a place whose command is gone is of the log as it is now.
   * @param foundAt the look at which the place, or one before it, was last found; 0 when that was never so in this process: then what
   *   was seen may all be of another log than the place
   * @param at looks a command up
   */
  async confirms({ sequence }: LogPosition, foundAt: number, at: (sequence: number) => Promise<StoredCommand | null>): Promise<boolean> {
    const newest = this.#newest;
    if (newest === null || newest.sequence < sequence || foundAt <= this.#restartedAt) return false;
    return hasFingerprint(await at(newest.sequence), newest.fingerprint);
  }
}
