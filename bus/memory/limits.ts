/** Past a limit of the embedded bus, new entries are refused. */
export interface MemoryBusLimits {
  /** Unpurged commands. */
  logBytes: number;
  /** Unsettled items. */
  workBytes: number;
  /** Usage records that no handler has accepted. */
  usageBytes: number;
}

export const DEFAULT_LIMITS: MemoryBusLimits = { logBytes: 1024 * 1024 * 1024, workBytes: 512 * 1024 * 1024, usageBytes: 512 * 1024 * 1024 };

/** From here on no new work is admitted, so that results still fit. */
const CAPACITY_SHARE = 0.8;

export function isBelowCapacity(stored: number, limit: number): boolean {
  return stored < CAPACITY_SHARE * limit;
}
