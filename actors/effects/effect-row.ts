/** An effect's row: each publish renders the same request from `inputs`. */
export interface EffectRow<Inputs extends CommonInputs = CommonInputs> {
  partition: number;
  id: string;
  sessionId: string;
  /** The turn, run or delivery that waits for it. */
  actorId: string;
  createdAtMs: number;
  /** Name of its kind (registry.ts). */
  kind: string;
  inputs: Inputs;
}

/** Each kind has more. */
export interface CommonInputs {
  deadlineAtMs: number;
  traceparent: string | null;
  [input: string]: unknown;
}
