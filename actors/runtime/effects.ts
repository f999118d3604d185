/** An effect as its row names it: the request is rendered from the inputs whenever it is published, and renders the same each time. */
export type EffectRow = {
  partition: number;
  id: string;
  sessionId: string;
  /** The turn or the run that waits for it. */
  turnId: string;
  createdAtMs: number;
} & EffectContent;

export type EffectContent =
  | { kind: 'router-call'; inputs: RouterCallInputs }
  | { kind: 'run-call'; inputs: RunCallInputs }
  | { kind: 'tool-list'; inputs: ToolListInputs }
  | { kind: 'tool-call'; inputs: ToolCallInputs }
  | { kind: 'delivery'; inputs: DeliveryInputs };

/** An effect of one kind. */
export type EffectOf<Kind extends EffectContent['kind']> = EffectRow & Extract<EffectContent, { kind: Kind }>;

interface CommonInputs {
  deadlineAtMs: number;
  traceparent: string | null;
}

interface RouterCallInputs extends CommonInputs {
  /** Which rendering: a change of the prompt's building takes a new number. */
  template: 'compose@1';
  bundleHash: string;
  /** The log up to and including this offset is the conversation. */
  upToOffset: number;
}

interface RunCallInputs extends CommonInputs {
  template: 'run@1';
  bundleHash: string;
  runId: string;
  /** So many messages of the run's transcript. */
  stepCount: number;
  useFallbackModel: boolean;
  /** By server: the tool list that the run began with. */
  lists: Record<string, string>;
}

interface ToolListInputs extends CommonInputs {
  bundleHash: string;
  servers: readonly string[];
}

interface ToolCallInputs extends CommonInputs {
  bundleHash: string;
  runId: string;
  /** The arguments stand in the transcript's message that has this call. */
  toolCallId: string;
  toolId: string;
  listHash: string;
}

interface DeliveryInputs extends CommonInputs {
  deliveryId: string;
}
