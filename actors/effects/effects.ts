/** An effect's row: each publish renders the same request from `inputs`. */
export type EffectRow = {
  partition: number;
  id: string;
  sessionId: string;
  /** The turn, run or delivery that waits for it. */
  actorId: string;
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
  /** Version of the rendering; raise it when the prompt's composition changes. */
  template: 'compose@1';
  bundleHash: string;
  /** Offset of the conversation's last event. */
  upToOffset: number;
}

interface RunCallInputs extends CommonInputs {
  template: 'run@1';
  bundleHash: string;
  runId: string;
  /** The call is rendered from so many messages of the transcript. */
  stepCount: number;
  useFallbackModel: boolean;
  /** By server: hash of the tool list at the run's start. */
  lists: Record<string, string>;
}

interface ToolListInputs extends CommonInputs {
  bundleHash: string;
  servers: readonly string[];
}

interface ToolCallInputs extends CommonInputs {
  bundleHash: string;
  runId: string;
  /** Arguments: in the transcript's message with this call. */
  toolCallId: string;
  toolId: string;
  listHash: string;
}

interface DeliveryInputs extends CommonInputs {
  deliveryId: string;
}
