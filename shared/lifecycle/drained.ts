/** A service that finishes what it has in hand before it stops. */
export interface Drained {
  /** @param withinMs how long what is in hand may take; by default what the service was configured with */
  stop(withinMs?: number): Promise<void>;
}
