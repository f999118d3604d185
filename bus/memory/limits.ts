/** What the embedded bus stores at most. Past a limit new things are refused: somebody has stopped reading, or working. */
export interface MemoryBusLimits {
  /** Unpurged commands. */
  logBytes: number;
  /** Work that is not done. */
  workBytes: number;
}

export const DEFAULT_LIMITS: MemoryBusLimits = { logBytes: 1024 * 1024 * 1024, workBytes: 512 * 1024 * 1024 };

/** From here on nothing new is let in from outside, so that the results of what was let in still fit. */
const CAPACITY_SHARE = 0.8;

export function isBelowCapacity(stored: number, limit: number): boolean {
  return stored < CAPACITY_SHARE * limit;
}
