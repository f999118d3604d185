/** What every transition needs besides state and command; kinds of actors need more (actors/inputs). The same inputs give the same rows. */
export interface TransitionInputs {
  atMs: number;
  /** A ULID of this time. */
  newId(atMs: number): string;
  /** 32 hex digits. */
  newTraceId(): string;
  /** Between 0 and 1, for jitter. */
  chance(): number;
}
