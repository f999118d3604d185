import { z } from 'zod';
import type { CustomerRecord } from './customer.ts';
import { eventSchemas, eventSource } from './event-schema.ts';
import { runStatus } from './run.ts';
import { runError } from './run-error.ts';
import type { SessionRecord } from './session.ts';

/** What the agent's API answers with, as published in `/openapi.json` and `schemas/`. Readers ignore fields that they do not know. */

const json = z.record(z.string(), z.unknown());
/** RFC 3339 in UTC, with milliseconds. */
const time = z.iso.datetime();

export const sessionAnswer = z.object({
  id: z.string(),
  customer_id: z.string(),
  agent_id: z.string(),
  title: z.string().nullable(),
  mode: z.enum(['auto', 'manual']),
  status: z.string(),
  created_at: time,
  updated_at: time,
  last_offset: z.int().min(-1),
  consumption_offsets: z.object({ client: z.int().min(-1) }),
  metadata: json,
  labels: z.array(z.string()),
  ephemeral: z.boolean(),
}) satisfies z.ZodType<SessionRecord>;

export const customerAnswer = z.object({
  id: z.string(),
  name: z.string(),
  external_id: z.string().nullable(),
  tags: z.array(z.string()),
  metadata: json,
  created_at: time,
  updated_at: time,
  ephemeral: z.boolean(),
}) satisfies z.ZodType<CustomerRecord>;

export const runEnvelopeAnswer = z.object({
  run_id: z.string(),
  routine_id: z.string(),
  status: runStatus,
  session_id: z.string(),
  created_at: time,
});

export const runAnswer = runEnvelopeAnswer.extend({
  output: json.nullable(),
  error: runError.nullable(),
  started_at: time.nullable(),
  completed_at: time.nullable(),
  trace_id: z.string(),
  metadata: json.nullable(),
});

export const runStepAnswer = z.object({
  step: z.int().min(1),
  kind: z.enum(['model_call', 'tool_call', 'tool_list']),
  tool_id: z.string().nullable(),
  outcome: z.string().nullable(),
  reason: z.string().nullable(),
  model: z.string().nullable(),
  provider: z.string().nullable(),
  usage: z.object({ prompt_tokens: z.int(), completion_tokens: z.int() }).nullable(),
  started_at: time,
  ended_at: time.nullable(),
  ms: z.number().nullable(),
});

/** A routine. `evaluation`: of its steps by a model, after the start. */
export const journeyAnswer = z.object({
  id: z.string(),
  routine_id: z.string(),
  version: z.int().min(1),
  title: z.string(),
  description: z.string(),
  kind: z.enum(['conversational', 'autonomous']),
  conditions: z.array(z.string()),
  root_id: z.string(),
  priority: z.int(),
  labels: z.array(z.string()),
  evaluation: z.enum(['pending', 'done', 'failed']),
  created_at: z.iso.datetime({ offset: true }).nullable(),
});

export const journeyGraphAnswer = z.object({
  journey: journeyAnswer,
  nodes: z.array(
    z.object({
      id: z.string(),
      kind: z.enum(['root', 'chat', 'tool', 'fork', 'end']),
      action: z.string().nullable(),
      description: z.string().nullable(),
      tools: z.array(z.string()),
      labels: z.array(z.string()),
      metadata: json,
    }),
  ),
  edges: z.array(z.object({ id: z.string(), source: z.string(), target: z.string(), condition: z.string().nullable(), metadata: json })),
});

/** @param item of the list */
export function pageOf(item: z.ZodType) {
  return z.object({ items: z.array(item), has_more: z.boolean(), next_cursor: z.string().nullable() });
}

/** `path` and `schema_path`: of what violated a schema. */
export const errorAnswer = z.object({
  error: z.string(),
  code: z.enum([
    'unauthorized',
    'not_found',
    'not_ready',
    'validation_failed',
    'conflict',
    'payload_too_large',
    'rate_limited',
    'internal',
    'session_error',
    'matching_failed',
    'timeout',
  ]),
  path: z.string().optional(),
  schema_path: z.string().optional(),
});

export const healthAnswer = z.object({ status: z.literal('ok'), service: z.literal('agent-server') });
/** Of a ready gateway. `tool_servers`: those that cannot be used, for a request with the key. */
export const readyAnswer = healthAnswer.extend({ tool_servers: z.record(z.string(), z.enum(['unreachable', 'auth_failed'])).optional() });
export const readinessAnswer = z.object({ status: z.enum(['booting', 'unavailable', 'draining']) });

const stored = { id: z.string(), source: eventSource, trace_id: z.string(), metadata: json };
const { user_message: user, preamble, assistant_message: assistant, status, tool, custom } = eventSchemas;

/** An event with all of its fields. */
export const storedEvent = z.union([
  user.extend(stored),
  preamble.extend(stored),
  assistant.extend(stored),
  status.extend(stored),
  tool.extend(stored),
  custom.extend(stored),
]);
export const eventPage = z.array(storedEvent);

export const toolEventAnswer = z.object({ event_id: z.string(), offset: z.int().min(0), creation_utc: time, trace_id: z.string() });

/** Above a number of sessions they are not counted: then `total_count` is that number. */
export const sessionPage = pageOf(sessionAnswer).extend({ total_count: z.int().min(0), total_count_is_exact: z.boolean() });

export const variableValueAnswer = z.object({ name: z.string(), data: z.unknown(), last_modified: time });

/** `from_offset`: of the next event to post. */
export const eventWebhookAnswer = z.object({ url: z.string().nullable(), from_offset: z.int().min(0) });
