/** A stored row of a turn. */
export interface StagedRow {
  seq: number;
  /** JSON, unchecked: rows outlive releases. */
  body: unknown;
}

export interface StoredAgentState {
  /** Of the event with whose deletion it goes. */
  offset: number;
  /** Unchecked. */
  state: unknown;
  /** The session's rows with a number below 0, unchecked; absent: it has none. */
  amendments?: readonly unknown[];
}

export interface TurnStore {
  /** By turn, in order. Omits turns without rows. */
  staged(turnIds: readonly string[]): Promise<Map<string, readonly StagedRow[]>>;
  /** By bundle and server: hash of the newest stored tool list. Omits servers that were never listed. */
  toolLists(bundleHashes: readonly string[]): Promise<Map<string, Record<string, string>>>;
  /** By session: its newest agent state. Omits sessions without one. */
  agentStates(sessionIds: readonly string[]): Promise<Map<string, StoredAgentState>>;
}
