/** What a model found out about a policy at boot; every field may be unknown still, and then the policy's own text counts. */
export interface PolicyEvaluation {
  /** Whether the action is to be taken again and again; null: unknown, which counts as no. */
  continuous: boolean | null;
  /** Whether the action is done only once the customer has answered. */
  customerDependent: boolean;
  /** The condition as an intention of the agent ("the agent is about to name a price"); null: the condition is about something else. */
  agentIntentionCondition: string | null;
  /** The action, reworded to be understood by itself. */
  internalAction: string | null;
}
