/** A service that finishes what is in flight before it stops. */
export interface Drained {
  /** @param withinMs limit of the drain; default: the configured one */
  stop(withinMs?: number): Promise<void>;
}
