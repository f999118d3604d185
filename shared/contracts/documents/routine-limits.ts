/** Of a routine; a document that passes one is refused at the start. */
export const routineLimits = {
  steps: 200,
  transitions: 1_000,
  conditions: 50,
  /** Steps that may follow a step, directly or over forks: all are shown in one question. */
  followUps: 32,
} as const;
