import { z } from 'zod';
import { allowListEntry } from '../manifest/hosts.ts';
import { documentHeader, documentId, documentReference, partHeader, toolId, toolSelector } from './document.ts';
import { checkRoutineGraph } from './routine-graph.ts';
import { routineLimits } from './routine-limits.ts';
import { webhookSignature } from './webhook-signature.ts';

const text = z.string().min(1);

const step = z.discriminatedUnion('kind', [
  /** The agent writes a message. `${macro-id}` in the text is expanded. */
  z.strictObject({ kind: z.literal('chat'), id: documentId, ...partHeader, chat_state: text }),
  z.strictObject({
    kind: z.literal('tool'),
    id: documentId,
    ...partHeader,
    tool_state: z.array(toolId).min(1),
    /** The purpose of the call; null when the tools make it clear. */
    tool_instruction: text.nullable().default(null),
  }),
  /** Only a branch. */
  z.strictObject({ kind: z.literal('fork'), id: documentId, ...partHeader }),
]);

const transition = z.strictObject({
  id: documentId.nullable().default(null),
  /** A step, or `root`. */
  from: documentId,
  /** A step, or `end`. */
  to: documentId,
  /** null: the default transition, taken when no other applies. */
  when: text.nullable().default(null),
});

/** A JSON Schema that accepts objects. The meta-schema is checked where the file is read (shared/config/check-routine.ts). */
const objectSchema = z.record(z.string(), z.unknown()).refine(acceptsObjects, { path: ['type'], error: 'must be or include "object"' });

function acceptsObjects({ type }: Record<string, unknown>): boolean {
  return type === undefined || type === 'object' || (Array.isArray(type) && type.includes('object'));
}

function atMost(count: number): string {
  return `must have at most ${count} entries`;
}

const common = {
  ...documentHeader,
  enabled: z.boolean().default(true),
  priority: z.number().int().default(0),
  tools: z.array(toolSelector).default([]),
  /** Policies that are active only while the routine is. A run has them in its prompt. */
  policies: z.array(documentId).default([]),
  transitions: z.array(transition).max(routineLimits.transitions, atMost(routineLimits.transitions)).default([]),
  /** null: the first step, unless there are transitions from `root`. */
  initial_step: documentId.nullable().default(null),
  composition_mode: z.literal('fluid').default('fluid'),
};

const conversational = z.strictObject({
  kind: z.literal('conversational').default('conversational'),
  ...common,
  conditions: z.array(text).min(1).max(routineLimits.conditions, atMost(routineLimits.conditions)),
  steps: z.array(step).min(1).max(routineLimits.steps, atMost(routineLimits.steps)),
});

const literal = z.union([z.string(), z.number(), z.boolean(), z.null()], { error: 'must be a string, a number, true, false or null' });

const autonomous = z.strictObject({
  kind: z.literal('autonomous'),
  ...common,
  /** The deliveries of a shared webhook that the routine is for, in words. */
  conditions: z.array(text).max(routineLimits.conditions, atMost(routineLimits.conditions)).default([]),
  /** A plan of the task, which a run has in its prompt. Its tools may be called beside `tools`. */
  steps: z.array(step).max(routineLimits.steps, atMost(routineLimits.steps)).default([]),
  /** The goal of a run: text, or a prompt document. */
  instructions: z.union([text, documentReference], { error: 'must be a text, or {id, version} of a prompt' }),
  input_schema: objectSchema.default({ type: 'object' }),
  /** The parameters of `emit_output`, the tool that ends a run. An integer beyond ±2^53 that cannot be kept exactly is refused there: give long ids the type `string`. */
  output_schema: objectSchema.default({ type: 'object' }),
  /** Hosts that results may be posted to; null and empty: any. */
  callback_url_allowlist: z.array(allowListEntry).nullable().default(null),
  /** null: AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS. */
  timeout_seconds: z.number().positive().nullable().default(null),
  /** null: `runtime.max_engine_iterations` of the manifest. */
  max_iterations: z.number().int().min(1).nullable().default(null),
  autonomous: z
    .strictObject({
      webhook: z.strictObject(webhookSignature).nullable().default(null),
      /** From a field path of a delivery's body to its accepted value or values. */
      match: z
        .record(z.string().min(1), z.union([literal, z.array(literal)], { error: 'must be a string, a number, true, false, null, or a list of these' }))
        .default({}),
    })
    .prefault({}),
});

/** A procedure: with a customer in steps (conversational), or run by itself when triggered (autonomous). */
export const routine = z.discriminatedUnion('kind', [conversational, autonomous]).superRefine((value, context) => {
  checkRoutineGraph(value, (path, message) => context.addIssue({ code: 'custom', path, message }));
});
export type Routine = z.infer<typeof routine>;
