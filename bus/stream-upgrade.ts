/** A setting of a broker's stream that is not as this release declares it. Values are as the broker has them: bytes, nanoseconds. */
export interface StreamDifference {
  field: string;
  found: unknown;
  declared: unknown;
}

/** What became of one stream of the broker. `refused`: it was left as it is, and `reason` says why, for people. */
export type StreamUpgrade = { name: string } & (
  | { outcome: 'unchanged' }
  | { outcome: 'created' }
  | { outcome: 'changed'; differences: StreamDifference[] }
  | { outcome: 'refused'; reason: string }
);
