/** A policy as the model judges it. */
export interface MatchItem {
  id: string;
  condition: string;
  /** Null for observations. */
  action: string | null;
}
