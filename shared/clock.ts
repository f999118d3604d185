/** The time, a port for tests and the simulation. */
export interface Clock {
  /** Epoch milliseconds, unless the clock says otherwise. */
  nowMs(): number;
}

export const systemClock: Clock = { nowMs: () => Date.now() };

/** Monotonic, from an arbitrary start: for durations within this process, as setting the machine's clock has no effect. */
export const steadyClock: Clock = { nowMs: () => performance.now() };
