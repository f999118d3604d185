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

const callCompleted = z.object({
  ...header,
  type: z.literal('call.completed'),
  turnId: z.string(),
  callId: z.string(),
  text: z.string(),
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

const turnDeadline = z.object({ ...header, type: z.literal('turn.deadline'), turnId: z.string() });

export const sessionCommand = z.discriminatedUnion('type', [createSession, postMessage, callCompleted, callFailed, turnDeadline]);
export type SessionCommand = z.infer<typeof sessionCommand>;
export type CommandOf<Type extends SessionCommand['type']> = Extract<SessionCommand, { type: Type }>;

/**
 * A turn is `trn_<ulid>`, its calls are `<turn>-1`, `<turn>-2` …, and the message that a call may bring is known before it is
 * written: token readers name it already while it is being made.
 */
export function replyEventId(callId: string): string {
  return callId.replace(/^trn_/, 'evt_');
}

/** What a command's sender learns: the value its reply is made of, or why it was refused. Kept in the seen row. */
export type Answer = { ok: true; value: Record<string, unknown> } | { ok: false; code: ErrorCode; message: string };

/** On `ans.<gateway>`. `repeat`: the command had been applied before, this is the answer it got then. */
export interface AnswerMessage {
  v: 1;
  commandId: string;
  repeat: boolean;
  answer: Answer;
}

/** On `evt.<session>`: the log grew to include offsets first … last. `events` are the stored events as JSON texts, null when they are too large for a notice. */
export interface NoticeMessage {
  v: 1;
  first: number;
  last: number;
  events: string[] | null;
}
