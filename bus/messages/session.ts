import { z } from 'zod';
import type { ErrorCode } from '#shared/errors/switchyard-error.ts';

/**
 * Commands to a session, on `cmd.<partition>`. The message id is `commandId`: the session stores it as a processed command, so a redelivery changes nothing
 * and gets the stored reply.
 */
const header = {
  v: z.literal(1),
  sessionId: z.string(),
  commandId: z.string(),
  /** Epoch milliseconds by the sender's clock. */
  sentAtMs: z.number(),
  /** The gateway that waits for the reply on `ans.<gateway>`; null when none does. */
  answerTo: z.string().nullable(),
  traceparent: z.string().nullable(),
};

const metadata = z.record(z.string(), z.unknown());

const createSession = z.object({
  ...header,
  type: z.literal('session.create'),
  customerId: z.string(),
  agentId: z.string(),
  title: z.string().nullable(),
  mode: z.enum(['auto', 'manual']),
  metadata,
  labels: z.array(z.string()),
  allowGreeting: z.boolean(),
  /** The bundle that the session's turns run on. */
  bundleHash: z.string(),
});

const postMessage = z.object({
  ...header,
  type: z.literal('message.post'),
  source: z.enum(['customer', 'customer_ui', 'human_agent', 'human_agent_on_behalf_of_ai_agent', 'system']),
  text: z.string(),
  metadata,
  /** Whether the message asks for a turn. */
  triggersTurn: z.boolean(),
  /** 32 hex digits: the trace id of the turn that the message begins. */
  traceId: z.string(),
  bundleHash: z.string(),
});

/** Changes the session's record. Absent fields stay unchanged; in metadata and labels, removals are applied after additions. */
const patchSession = z.object({
  ...header,
  type: z.literal('session.patch'),
  title: z.string().nullable().optional(),
  mode: z.enum(['auto', 'manual']).optional(),
  setMetadata: metadata,
  unsetMetadata: z.array(z.string()),
  upsertLabels: z.array(z.string()),
  removeLabels: z.array(z.string()),
  /** The newest offset that the client has shown, -1 for none; past the end of the log it is refused. */
  clientOffset: z.number().optional(),
});

/** Ends the session: its events are deleted, a tombstone stays. */
const deleteSession = z.object({
  ...header,
  type: z.literal('session.delete'),
  /** Refuses to delete while a turn or a run is in progress when the command is applied; absent: false. */
  unlessBusy: z.boolean().optional(),
});

/** Begins a run whose row the gateway has written; the row holds its input. The command's id is the run's. */
const startRun = z.object({ ...header, type: z.literal('run.start'), runId: z.string() });

const callCompleted = z.object({
  ...header,
  type: z.literal('call.completed'),
  /** The turn or run that waits for the call. */
  turnId: z.string(),
  callId: z.string(),
  text: z.string(),
  /** Functions that the model asks to call; `arguments` is the model's text, which need not be JSON. */
  toolCalls: z.array(z.object({ id: z.string(), name: z.string(), arguments: z.string() })).default([]),
  model: z.string(),
  provider: z.string(),
  finishReason: z.string(),
  usage: z.object({ promptTokens: z.number(), completionTokens: z.number() }).nullable(),
});

const callFailed = z.object({
  ...header,
  type: z.literal('call.failed'),
  turnId: z.string(),
  callId: z.string(),
  failure: z.object({ code: z.string(), message: z.string(), details: z.record(z.string(), z.unknown()) }),
});

/** Result of one tool call. Its command id is the effect's, as with every result. */
const toolCompleted = z.object({
  ...header,
  type: z.literal('tool.completed'),
  turnId: z.string(),
  callId: z.string(),
  outcome: z.discriminatedUnion('type', [
    /** The tool replied. `isError`: it reports its own failure, which is passed on to the model. */
    z.object({ type: z.literal('result'), data: z.unknown(), metadata, isError: z.boolean() }),
    /**
     * No reply. `outcome_unknown`: it may have been carried out, and is not retried. `refused`: the arguments break its schema, or the server does not know
     * the tool. `unreachable`, `auth_failed`: this run can't use the server.
     */
    z.object({
      type: z.literal('failed'),
      reason: z.enum(['outcome_unknown', 'refused', 'timeout', 'unreachable', 'auth_failed']),
      message: z.string(),
    }),
  ]),
});

/** The tools that a run may use, as their servers list them now. */
const toolsListed = z.object({
  ...header,
  type: z.literal('tools.listed'),
  turnId: z.string(),
  callId: z.string(),
  /** By server: the hash of its stored list. */
  lists: z.record(z.string(), z.string()),
  /** By server: why it has no list. */
  unavailable: z.record(z.string(), z.enum(['unreachable', 'auth_failed'])),
  /** The item's deadline ended the listing before every server had replied; absent from workers of the previous release: false. */
  timedOut: z.boolean().optional(),
});

/** Result of one round of a delivery. Its command id is the effect's. */
const deliveryReported = z.object({
  ...header,
  type: z.literal('delivery.reported'),
  deliveryId: z.string(),
  callId: z.string(),
  /** Tries so far, as its row counts them. */
  attempts: z.number(),
  /** `failed`: to be retried. `exhausted`: not retried, now a dead letter. */
  outcome: z.enum(['delivered', 'failed', 'exhausted']),
  /** For people; null when it was delivered. */
  reason: z.string().nullable(),
  /** The receiver's retry-after, bounded; null without one. */
  retryAfterMs: z.number().nullable(),
});

/** Timer: the delivery's next round is due. */
const deliveryDue = z.object({ ...header, type: z.literal('delivery.due'), deliveryId: z.string() });

/** Timer: an effect without a result for so long that its item may be lost with its stream. */
const effectOverdue = z.object({
  ...header,
  type: z.literal('effect.overdue'),
  callId: z.string(),
  /** The turn, run or delivery that waits for it. */
  turnId: z.string(),
  kind: z.enum(['tool-call', 'tool-list', 'delivery']),
});

const runDeadline = z.object({ ...header, type: z.literal('run.deadline'), turnId: z.string() });

const turnDeadline = z.object({ ...header, type: z.literal('turn.deadline'), turnId: z.string() });

export const sessionCommand = z.discriminatedUnion('type', [
  createSession,
  patchSession,
  deleteSession,
  postMessage,
  startRun,
  callCompleted,
  callFailed,
  toolsListed,
  toolCompleted,
  deliveryReported,
  deliveryDue,
  effectOverdue,
  turnDeadline,
  runDeadline,
]);
export type SessionCommand = z.infer<typeof sessionCommand>;
/** Results that workers report; all other commands are requests. */
export const resultTypes: ReadonlySet<SessionCommand['type']> = new Set([
  'call.completed',
  'call.failed',
  'tools.listed',
  'tool.completed',
  'delivery.reported',
]);
export type CommandOf<Type extends SessionCommand['type']> = Extract<SessionCommand, { type: Type }>;

/**
 * The event id of the message that a call may bring: `trn_<ulid>-1` (a call of a turn) gives `evt_<ulid>-1`. Known before the message is written, so that SSE
 * readers can name it while it streams.
 */
export function replyEventId(callId: string): string {
  return callId.replace(/^trn_/, 'evt_');
}

/** The outcome for a command's sender: the value of its reply, or why it was refused. Stored with the processed command. */
export type CommandReply = { ok: true; value: Record<string, unknown> } | { ok: false; code: ErrorCode; message: string };

/** On `ans.<gateway>`. `repeat`: the command had been applied before, and this is the stored reply. */
export interface ReplyMessage {
  v: 1;
  commandId: string;
  repeat: boolean;
  answer: CommandReply;
}

/**
 * On `evt.<session>`: the log grew by offsets first … last. `events` are the stored events as JSON texts, null when they are too large for a notice.
 * `isDeleted`: the session is deleted; there are no events, and no further notices.
 */
export interface NoticeMessage {
  v: 1;
  first: number;
  last: number;
  events: string[] | null;
  isDeleted?: boolean;
}
