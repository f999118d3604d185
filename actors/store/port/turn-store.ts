/** A stored row of a turn. */
export interface StagedRow {
  seq: number;
  /** JSON, unchecked: rows outlive releases. */
  body: unknown;
}

export interface TurnStore {
  /** By turn, in order. Omits turns without rows. */
  staged(turnIds: readonly string[]): Promise<Map<string, StagedRow[]>>;
  /** By session: its newest agent state, unchecked. Omits sessions without one. */
  agentStates(sessionIds: readonly string[]): Promise<Map<string, unknown>>;
}
