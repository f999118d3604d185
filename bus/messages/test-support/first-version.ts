import { z } from 'zod';

/** What the release before `actorId` reads: its schemas of the messages that name a turn, run or delivery, copied from it. */

const commandHeader = {
  v: z.literal(1),
  sessionId: z.string(),
  commandId: z.string(),
  sentAtMs: z.number(),
  answerTo: z.string().nullable(),
  traceparent: z.string().nullable(),
};

const metadata = z.record(z.string(), z.unknown());

export const firstCommand = z.discriminatedUnion('type', [
  z.object({
    ...commandHeader,
    type: z.literal('call.completed'),
    turnId: z.string(),
    callId: z.string(),
    text: z.string(),
    toolCalls: z.array(z.object({ id: z.string(), name: z.string(), arguments: z.string() })).default([]),
    model: z.string(),
    provider: z.string(),
    finishReason: z.string(),
    usage: z.object({ promptTokens: z.number(), completionTokens: z.number() }).nullable(),
  }),
  z.object({
    ...commandHeader,
    type: z.literal('call.failed'),
    turnId: z.string(),
    callId: z.string(),
    failure: z.object({ code: z.string(), message: z.string(), details: metadata }),
  }),
  z.object({
    ...commandHeader,
    type: z.literal('tool.completed'),
    turnId: z.string(),
    callId: z.string(),
    outcome: z.discriminatedUnion('type', [
      z.object({ type: z.literal('result'), data: z.unknown(), metadata, isError: z.boolean() }),
      z.object({
        type: z.literal('failed'),
        reason: z.enum(['outcome_unknown', 'refused', 'timeout', 'unreachable', 'auth_failed']),
        message: z.string(),
      }),
    ]),
  }),
  z.object({
    ...commandHeader,
    type: z.literal('tools.listed'),
    turnId: z.string(),
    callId: z.string(),
    lists: z.record(z.string(), z.string()),
    unavailable: z.record(z.string(), z.enum(['unreachable', 'auth_failed'])),
    timedOut: z.boolean().optional(),
  }),
  z.object({
    ...commandHeader,
    type: z.literal('effect.overdue'),
    callId: z.string(),
    turnId: z.string(),
    kind: z.enum(['tool-call', 'tool-list', 'delivery']),
  }),
  z.object({ ...commandHeader, type: z.literal('run.deadline'), turnId: z.string() }),
  z.object({ ...commandHeader, type: z.literal('turn.deadline'), turnId: z.string() }),
]);

const workHeader = {
  v: z.literal(1),
  effectId: z.string(),
  sessionId: z.string(),
  turnId: z.string(),
  bundleHash: z.string(),
  deadlineAtMs: z.number(),
  createdAtMs: z.number(),
  republished: z.boolean(),
  traceparent: z.string().nullable(),
};

export const firstToolWork = z.discriminatedUnion('type', [
  z.object({ ...workHeader, type: z.literal('list'), servers: z.array(z.string()) }),
  z.object({ ...workHeader, type: z.literal('call'), toolId: z.string(), listHash: z.string(), arguments: z.record(z.string(), z.unknown()) }),
]);

/** Without the fields that are the same in both versions. */
export const firstRouterCall = z.object({
  v: z.literal(1),
  callId: z.string(),
  reply: z.object({ sessionId: z.string(), turnId: z.string(), epoch: z.number().int().optional() }).nullable(),
});

type Message = Record<string, unknown>;

/** The message as the release before writes it. */
export function asFirstVersion(message: object): Message {
  const { actorId, reply, ...rest } = message as Message;
  return { ...rest, v: 1, ...(isMessage(reply) ? { reply: asFirstVersion(reply) } : {}) };
}

/** The message as a later release may write it. */
export function asSecondVersion(message: object): Message {
  const { turnId, reply, ...rest } = message as Message;
  return { ...rest, v: 2, ...(isMessage(reply) ? { reply: asSecondVersion(reply) } : {}) };
}

function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null;
}
