import { z } from 'zod';
import type { ErrorCode } from '#shared/errors/switchyard-error.ts';

/**
 * Commands to a session, on `cmd.<partition>`. The message id is `commandId`: the session's seen row remembers it, so a second
 * delivery changes nothing and is answered like the first.
 */
const header = {
  v: z.literal(1),
  sessionId: z.string(),
  commandId: z.string(),
  /** When the sender made the command, epoch milliseconds by its clock. */
  sentAtMs: z.number(),
  /** The gateway that waits for the answer on `ans.<gateway>`; null when nobody does. */
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
  /** Hash of the configuration bundle that the session's turns run on. */
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
  /** 32 hex: the trace of the turn that the message begins. */
  traceId: z.string(),
  bundleHash: z.string(),
});

/** Changes the session's record. What is absent stays as it is; in metadata and labels what is taken away goes last. */
const patchSession = z.object({
  ...header,
  type: z.literal('session.patch'),
  title: z.string().nullable().optional(),
  mode: z.enum(['auto', 'manual']).optional(),
  setMetadata: metadata,
  unsetMetadata: z.array(z.string()),
  upsertLabels: z.array(z.string()),
  removeLabels: z.array(z.string()),
  /** The newest offset that the client has shown, -1 for none; it may not lie beyond the log. */
  clientOffset: z.number().optional(),
});

/** Ends the session for good: its events go, a tombstone stays. */
const deleteSession = z.object({
  ...header,
  type: z.literal('session.delete'),
  /** Leaves a session as it is in which a turn or a run is in progress by the time the command is applied; absent: false. */
  unlessBusy: z.boolean().optional(),
});

/** Begins a run whose row the gateway has written; everything about it stands there. The command's id is the run's. */
const startRun = z.object({ ...header, type: z.literal('run.start'), runId: z.string() });

const callCompleted = z.object({
  ...header,
  type: z.literal('call.completed'),
  /** The turn or the run that waits for the call. */
  turnId: z.string(),
  callId: z.string(),
  text: z.string(),
  /** Functions that the model wants called; `arguments` is its text, which need not be JSON. */
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

/** What came of one tool call. Its command's id is the effect's, as with every result. */
const toolCompleted = z.object({
  ...header,
  type: z.literal('tool.completed'),
  turnId: z.string(),
  callId: z.string(),
  outcome: z.discriminatedUnion('type', [
    /** The tool answered. `isError`: it says itself that it failed, which is the model's to deal with. */
    z.object({ type: z.literal('result'), data: z.unknown(), metadata, isError: z.boolean() }),
    /**
     * It did not. `outcome_unknown`: it may have happened, and is not tried again. `refused`: the arguments break its schema, or the
     * server says that there is no such tool. `unreachable`, `auth_failed`: the server is of no use to this run.
     */
    z.object({
      type: z.literal('failed'),
      reason: z.enum(['outcome_unknown', 'refused', 'timeout', 'unreachable', 'auth_failed']),
      message: z.string(),
    }),
  ]),
});

/** The tools that a run may use, as its servers list them now. */
const toolsListed = z.object({
  ...header,
  type: z.literal('tools.listed'),
  turnId: z.string(),
  callId: z.string(),
  /** By server: the hash under which its list is stored. */
  lists: z.record(z.string(), z.string()),
  /** By server: why it has none. */
  unavailable: z.record(z.string(), z.enum(['unreachable', 'auth_failed'])),
  /** The item's deadline ended the listing before every server had answered; absent from workers of the release before: false. */
  timedOut: z.boolean().optional(),
});

/** One item of a delivery is done with. Its command's id is the effect's. */
const deliveryReported = z.object({
  ...header,
  type: z.literal('delivery.reported'),
  deliveryId: z.string(),
  callId: z.string(),
  /** How often it has been posted by now, as its row counts. */
  attempts: z.number(),
  /** `failed`: to be tried again. `exhausted`: it is not, and has become a dead letter. */
  outcome: z.enum(['delivered', 'failed', 'exhausted']),
  /** Why, for people; null when it was delivered. */
  reason: z.string().nullable(),
  /** The receiver's wish, bounded; null when it has none. */
  retryAfterMs: z.number().nullable(),
});

/** The time to post a delivery again has come. */
const deliveryDue = z.object({ ...header, type: z.literal('delivery.due'), deliveryId: z.string() });

/** An item that should long have brought its result may be lost with its stream. */
const effectOverdue = z.object({
  ...header,
  type: z.literal('effect.overdue'),
  callId: z.string(),
  /** The turn, the run or the delivery that waits for it. */
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
/** What workers report of the work that they were given; all others are requests. */
export const resultTypes: ReadonlySet<SessionCommand['type']> = new Set([
  'call.completed',
  'call.failed',
  'tools.listed',
  'tool.completed',
  'delivery.reported',
]);
export type CommandOf<Type extends SessionCommand['type']> = Extract<SessionCommand, { type: Type }>;

/**
 * A turn is `trn_<ulid>`, its calls are `<turn>-1`, `<turn>-2` …, and the message that a call may bring is known before it is
 * written: token readers name it already while it is being made.
 */
export function replyEventId(callId: string): string {
  return callId.replace(/^trn_/, 'evt_');
}

/** What a command's sender learns: the value its reply is made of, or why it was refused. Kept in the seen row. */
export type CommandReply = { ok: true; value: Record<string, unknown> } | { ok: false; code: ErrorCode; message: string };

/** On `ans.<gateway>`. `repeat`: the command had been applied before, this is the answer it got then. */
export interface ReplyMessage {
  v: 1;
  commandId: string;
  repeat: boolean;
  answer: CommandReply;
}

/**
 * On `evt.<session>`: the log grew to include offsets first … last. `events` are the stored events as JSON texts, null when they are too
 * large for a notice. `isDeleted`: the session is gone and nothing comes any more; there are no events then.
 */
export interface NoticeMessage {
  v: 1;
  first: number;
  last: number;
  events: string[] | null;
  isDeleted?: boolean;
}
