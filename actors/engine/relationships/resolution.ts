/** Why an entity is active or not. */
export interface Resolution {
  /** `policy:<id>` or `routine:<id>`. */
  entity: string;
  /** `none`: active by itself. */
  outcome: 'none' | 'entailed' | 'deprioritized' | 'unmet_dependency';
  /** Null for `none`. */
  relationship: 'priority' | 'numeric_priority' | 'dependency' | 'scope' | 'entailment' | null;
  /** What displaces or entails it; references of what it lacks. */
  counterparts: string[];
}
