/** A setting of a broker's stream that differs from this release's declaration, in the broker's units: bytes, nanoseconds. */
export interface StreamDifference {
  field: string;
  found: unknown;
  declared: unknown;
}

/** `refused`: left unchanged; `reason` is for people. */
export type StreamUpgrade = { name: string } & (
  | { outcome: 'unchanged' }
  | { outcome: 'created' }
  | { outcome: 'changed'; differences: StreamDifference[] }
  | { outcome: 'refused'; reason: string }
);

/** A stream of the broker beside its declaration. `fields`: those that differ, or that copy messages past the users' permissions. */
export interface StreamState {
  name: string;
  state: 'declared' | 'missing' | 'different' | 'copying';
  fields: string[];
}
