/** An effect's row. The request is rendered from `inputs` at every publish, with the same result each time. */
export type EffectRow = {
  partition: number;
  id: string;
  sessionId: string;
  /** The turn, run or delivery that waits for it. */
  turnId: string;
  createdAtMs: number;
} & EffectContent;

export type EffectContent =
  | { kind: 'router-call'; inputs: RouterCallInputs }
  | { kind: 'run-call'; inputs: RunCallInputs }
  | { kind: 'tool-list'; inputs: ToolListInputs }
  | { kind: 'tool-call'; inputs: ToolCallInputs }
  | { kind: 'delivery'; inputs: DeliveryInputs };

export type EffectOf<Kind extends EffectContent['kind']> = EffectRow & Extract<EffectContent, { kind: Kind }>;

interface CommonInputs {
  deadlineAtMs: number;
  traceparent: string | null;
}

interface RouterCallInputs extends CommonInputs {
  /** Version of the rendering: raise it with any change of the prompt's composition. */
  template: 'compose@1';
  bundleHash: string;
  /** The conversation is the log up to and including this offset. */
  upToOffset: number;
}

interface RunCallInputs extends CommonInputs {
  template: 'run@1';
  bundleHash: string;
  runId: string;
  /** Length of the transcript that is rendered. */
  stepCount: number;
  useFallbackModel: boolean;
  /** By server: the hash of the tool list that the run began with. */
  lists: Record<string, string>;
}

interface ToolListInputs extends CommonInputs {
  bundleHash: string;
  servers: readonly string[];
}

interface ToolCallInputs extends CommonInputs {
  bundleHash: string;
  runId: string;
  /** The arguments are in the transcript's message with this call. */
  toolCallId: string;
  toolId: string;
  listHash: string;
}

interface DeliveryInputs extends CommonInputs {
  deliveryId: string;
}
