import { z } from 'zod';
import { sessionStatuses } from '#shared/contracts/agent/conversation-event.ts';
import type { ErrorCode } from '#shared/errors/switchyard-error.ts';
import { carriedContext } from '#shared/telemetry/carried-context.ts';
import { actorShape, withActorFields } from './actor-fields.ts';

/**
 * The newest version that this release reads. It writes version 1 (ADR 37), and version 3 of commands that the release before does not know: a host of that
 * release leaves them to a newer one (ADR 72).
 */
export const COMMAND_VERSION = 3;

/**
 * Commands to a session, on `cmd.<partition>`. `commandId` is the message id and the id of the processed command: a repeat changes nothing and gets the
 * stored reply.
 */
const header = {
  v: z.literal([1, 2, COMMAND_VERSION]),
  sessionId: z.string(),
  commandId: z.string(),
  /** By the sender's clock. */
  sentAtMs: z.number(),
  /** Gateway to reply to on `ans.<gateway>`; null for none. */
  answerTo: z.string().nullable(),
  traceparent: z.string().nullable(),
  /** Absent: nothing, or a command of a release before. */
  carried: carriedContext.optional(),
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
  /** Hash of the bundle that the session's turns run on. */
  bundleHash: z.string(),
  /** Where its events are posted; null and absent: to the deployment's address, if there is one. */
  eventWebhookUrl: z.string().nullable().optional(),
});

const messageSource = z.enum(['customer', 'customer_ui', 'human_agent', 'human_agent_on_behalf_of_ai_agent', 'system']);

/** How a customer's message is checked before models see it. */
export const moderationModes = ['auto', 'paranoid'] as const;
export type ModerationMode = (typeof moderationModes)[number];

const postMessage = z.object({
  ...header,
  type: z.literal('message.post'),
  source: messageSource,
  text: z.string(),
  /** As the poster states it; a command that has one is of version 3. */
  participant: z.object({ id: z.string().nullable(), display_name: z.string() }).optional(),
  /** Absent: it is not checked. A command that has one is of version 3. */
  moderation: z.enum(moderationModes).optional(),
  metadata,
  triggersTurn: z.boolean(),
  /** 32 hex digits: the trace of the turn that it begins. */
  traceId: z.string(),
  bundleHash: z.string(),
});

/** Appends an event of a front end, which begins no turn; of version 3. */
const postClientEvent = z.object({
  ...header,
  type: z.literal('client-event.post'),
  source: messageSource,
  content: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('custom'), data: z.unknown() }),
    z.object({ kind: z.literal('status'), status: z.enum(sessionStatuses), data: z.unknown().optional() }),
  ]),
  metadata,
  /** 32 hex digits. */
  traceId: z.string(),
});

/** Appends a synthetic tool result, in the version that brought it (ADR 72). */
const postToolEvent = z.object({
  ...header,
  type: z.literal('tool-event.post'),
  toolId: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  result: z.unknown(),
  resultMetadata: metadata,
  /** Of the event; with the idempotency key, if any. */
  metadata,
  triggersTurn: z.boolean(),
  /** 32 hex digits: the event's trace, and that of the turn that it begins. */
  traceId: z.string(),
  bundleHash: z.string(),
});

/** Changes the metadata of an event; removals apply last. Of version 3. */
const patchEvent = z.object({
  ...header,
  type: z.literal('event.patch'),
  eventId: z.string(),
  setMetadata: metadata,
  unsetMetadata: z.array(z.string()),
});

/** Deletes the events from an offset up to the end that the log has when the command is applied; of version 3. */
const deleteEvents = z.object({
  ...header,
  type: z.literal('events.delete'),
  /** The first event at or above it must be the first of its turn. */
  minOffset: z.number(),
  /** Cancels a turn in progress; false: refused during one. */
  force: z.boolean(),
});

/** Changes the record. Absent fields stay; removals from metadata and labels apply after additions. */
const patchSession = z.object({
  ...header,
  type: z.literal('session.patch'),
  title: z.string().nullable().optional(),
  mode: z.enum(['auto', 'manual']).optional(),
  setMetadata: metadata,
  unsetMetadata: z.array(z.string()),
  upsertLabels: z.array(z.string()),
  removeLabels: z.array(z.string()),
  /** The newest offset that the client has shown, -1 for none; refused past the end of the log. */
  clientOffset: z.number().optional(),
});

/** Deletes the events and leaves a tombstone. */
const deleteSession = z.object({
  ...header,
  type: z.literal('session.delete'),
  /** No effect while a turn or run is in progress; absent: false. */
  unlessBusy: z.boolean().optional(),
});

/** Begins a run; the gateway has written its row. The command's id is the run's. */
const startRun = z.object({ ...header, type: z.literal('run.start'), runId: z.string() });

/** Fails a run that has not settled; of version 3. */
const cancelRun = z.object({ ...header, type: z.literal('run.cancel'), runId: z.string() });

const callCompleted = z.object({
  ...header,
  type: z.literal('call.completed'),
  /** The turn or run that waits. */
  ...actorShape,
  callId: z.string(),
  text: z.string(),
  /** `arguments` is the model's text, which need not be JSON. */
  toolCalls: z.array(z.object({ id: z.string(), name: z.string(), arguments: z.string() })).default([]),
  model: z.string(),
  provider: z.string(),
  finishReason: z.string(),
  usage: z.object({ promptTokens: z.number(), completionTokens: z.number() }).nullable(),
  /** Of a call for vectors: each 32-bit floats, little endian, in base64, in the order of the inputs. Absent: it was a chat. */
  vectors: z.array(z.string()).optional(),
});

const callFailed = z.object({
  ...header,
  type: z.literal('call.failed'),
  ...actorShape,
  callId: z.string(),
  failure: z.object({ code: z.string(), message: z.string(), details: z.record(z.string(), z.unknown()) }),
});

/** The command id of every result is the effect's. */
const toolCompleted = z.object({
  ...header,
  type: z.literal('tool.completed'),
  ...actorShape,
  callId: z.string(),
  outcome: z.discriminatedUnion('type', [
    /** `isError`: the tool's own failure, passed on to the model. */
    z.object({ type: z.literal('result'), data: z.unknown(), metadata, isError: z.boolean() }),
    /**
     * `outcome_unknown`: may have been carried out, so not retried. `refused`: the arguments break its schema, or the server does not know the tool.
     * `unreachable`, `auth_failed`: this run can't use the server.
     */
    z.object({
      type: z.literal('failed'),
      reason: z.enum(['outcome_unknown', 'refused', 'timeout', 'unreachable', 'auth_failed']),
      message: z.string(),
    }),
  ]),
});

/** The tools that a run may use. */
const toolsListed = z.object({
  ...header,
  type: z.literal('tools.listed'),
  ...actorShape,
  callId: z.string(),
  /** Hash of the stored list, by server. */
  lists: z.record(z.string(), z.string()),
  /** Why a server has no list. */
  unavailable: z.record(z.string(), z.enum(['unreachable', 'auth_failed'])),
  /** The deadline ended the listing before every server had replied; absent from workers of the previous release: false. */
  timedOut: z.boolean().optional(),
});

/** Result of one round of a delivery. */
const deliveryReported = z.object({
  ...header,
  type: z.literal('delivery.reported'),
  deliveryId: z.string(),
  callId: z.string(),
  /** Tries so far, by its row. */
  attempts: z.number(),
  /** `failed`: to be retried. `exhausted`: now a dead letter. */
  outcome: z.enum(['delivered', 'failed', 'exhausted']),
  /** For people; null when delivered. */
  reason: z.string().nullable(),
  /** The receiver's retry-after, bounded; null for none. */
  retryAfterMs: z.number().nullable(),
});

/** The next round is due. */
const deliveryDue = z.object({ ...header, type: z.literal('delivery.due'), deliveryId: z.string() });

/** Sets a session's event webhook. */
const setEventWebhook = z.object({
  ...header,
  type: z.literal('event-webhook.set'),
  /** Null: off. */
  url: z.string().nullable(),
  /** Of the next event to post; null: it stays, and is the next event's for a session that had none. */
  fromOffset: z.number().nullable(),
  bundleHash: z.string(),
});

/** Result of one round of an event webhook. */
const eventWebhookReported = z.object({
  ...header,
  type: z.literal('event-webhook.reported'),
  callId: z.string(),
  /** `failed`: an attempt for the event at `nextOffset`. `postponed`: none was made for it. */
  outcome: z.enum(['posted', 'failed', 'postponed']),
  /** Every event of the round before it is posted. */
  nextOffset: z.number(),
  /** For people; null when posted. */
  reason: z.string().nullable(),
  /** Bounded; null for none. */
  retryAfterMs: z.number().nullable(),
});

/** Posts one given up event again, outside the order of the rounds. Of version 3. */
const replayDeadEvent = z.object({
  ...header,
  type: z.literal('event-webhook.replay'),
  offset: z.number(),
  /** As its dead letter has them. */
  url: z.string(),
  bundleHash: z.string(),
});

/** The next round after a pause is due. */
const eventWebhookDue = z.object({ ...header, type: z.literal('event-webhook.due'), roundId: z.string() });

/** No result for so long that the item may be lost with its stream. */
const effectOverdue = z.object({
  ...header,
  type: z.literal('effect.overdue'),
  callId: z.string(),
  /** The turn, run or delivery that waits. */
  ...actorShape,
  /** Name of the kind of effect. */
  kind: z.string(),
});

const runDeadline = z.object({ ...header, type: z.literal('run.deadline'), ...actorShape });

const turnDeadline = z.object({ ...header, type: z.literal('turn.deadline'), turnId: z.string() });

const anyCommand = z.discriminatedUnion('type', [
  createSession,
  patchSession,
  deleteSession,
  postMessage,
  postToolEvent,
  postClientEvent,
  patchEvent,
  deleteEvents,
  startRun,
  cancelRun,
  callCompleted,
  callFailed,
  toolsListed,
  toolCompleted,
  deliveryReported,
  deliveryDue,
  setEventWebhook,
  eventWebhookReported,
  replayDeadEvent,
  eventWebhookDue,
  effectOverdue,
  turnDeadline,
  runDeadline,
]);

/** Reads versions 1 to 3. */
export const sessionCommand = z.preprocess(withActorFields, anyCommand);
export type SessionCommand = z.infer<typeof sessionCommand>;
/** What workers report; all others are requests. */
const results = [
  'call.completed',
  'call.failed',
  'tools.listed',
  'tool.completed',
  'delivery.reported',
  'event-webhook.reported',
] as const satisfies SessionCommand['type'][];
export type ResultType = (typeof results)[number];
export const resultTypes: ReadonlySet<SessionCommand['type']> = new Set(results);
const CHECK_SUFFIX = '-moderation';
const logChangeTypes: ReadonlySet<SessionCommand['type']> = new Set(['event.patch', 'events.delete']);

/** The id of the call that checks a message. */
export function checkIdOf(eventId: string): string {
  return `${eventId}${CHECK_SUFFIX}`;
}

/** The message that a command brings the check of; null for any other command. */
export function checkedEventOf(command: SessionCommand): string | null {
  return 'callId' in command && command.callId.endsWith(CHECK_SUFFIX) ? command.callId.slice(0, -CHECK_SUFFIX.length) : null;
}

/** Whether it changes stored events: such a command has a commit of its own, since it reads the log as all commands before it have left it. */
export function changesLog(command: SessionCommand): boolean {
  return logChangeTypes.has(command.type) || checkedEventOf(command) !== null;
}
export type CommandOf<Type extends SessionCommand['type']> = Extract<SessionCommand, { type: Type }>;

/** The id of the message that a turn's call may bring: `trn_<ulid>-1` gives `evt_<ulid>-1`. Token readers name it before it is written. */
export function replyEventId(callId: string): string {
  return callId.replace(/^trn_/, 'evt_');
}

/**
 * A command's value, or its refusal; stored with the processed command. `sequence` and `storedAtMs`: of a transient refusal, the position of the command in the
 * log and the log's time of it, which say to which of several copies it belongs. Hosts of earlier releases don't say them.
 */
export type CommandReply = { ok: true; value: Record<string, unknown> } | CommandRefusal;
export interface CommandRefusal {
  ok: false;
  code: ErrorCode;
  message: string;
  sequence?: number | undefined;
  storedAtMs?: number | undefined;
}

/** Refused for the moment: the same command is applied when it is sent again. Any other reply is final. */
export function isTransientRefusal(reply: CommandReply): reply is CommandRefusal {
  return !reply.ok && reply.code === 'service.overloaded';
}

/** On `ans.<gateway>`. `repeat`: applied before; this is the stored reply. */
export interface ReplyMessage {
  v: 1;
  commandId: string;
  repeat: boolean;
  answer: CommandReply;
}

/**
 * On `evt.<session>`: the log grew by offsets first … last. `events` are JSON texts, null when too large for a notice. `isDeleted`: no events, and none to
 * come. `isChanged`: stored events were changed or deleted; `last` is before `first` when none was appended.
 */
export interface NoticeMessage {
  v: 1;
  first: number;
  last: number;
  events: string[] | null;
  isDeleted?: boolean;
  isChanged?: boolean;
}
