import { z } from 'zod';
import { documentId, toolId } from '#shared/contracts/documents/document.ts';

const MAX_TEXT_CHARACTERS = 32_768;
const MAX_TURNS = 200;
const MAX_EVENTS = 50;
const MAX_LISTED = 200;
const MAX_CALLS = 100;
const MAX_DOCUMENTS = 100;

const text = z.string().min(1).max(MAX_TEXT_CHARACTERS);
const json = z.record(z.string(), z.unknown());
const ids = z.array(documentId).max(MAX_LISTED).default([]);
const toolIds = z.array(toolId).max(MAX_LISTED).default([]);
const fragments = z.array(z.string().min(1).max(1_000)).max(MAX_LISTED).default([]);

/** One kind of event each, as a YAML entry with one field. */
const event = z
  .strictObject({
    customer: text.optional(),
    human_agent: text.optional(),
    system: text.optional(),
    /** A tool result that an integration adds to the conversation. */
    tool_result: z.strictObject({ tool: toolId, arguments: json.default({}), result: z.unknown() }).optional(),
  })
  .refine(
    (given) => Object.values(given).filter((value) => value !== undefined).length === 1,
    'must have exactly one of customer, human_agent, system and tool_result',
  );

const expected = z.strictObject({
  /** How the turn ends; `none`: no turn begins. */
  outcome: z.enum(['replied', 'failed', 'cancelled', 'none']).default('replied'),
  policies: z.strictObject({ apply: ids, do_not_apply: ids }).optional(),
  /** By routine: its current step; null: it has none in this turn. */
  steps: z.record(documentId, documentId.nullable()).optional(),
  tools: z.strictObject({ called: toolIds, not_called: toolIds }).optional(),
  /** Parameters that the customer is asked for. */
  questions: z.array(z.string().min(1)).max(MAX_LISTED).optional(),
  reply: z.strictObject({ contains: fragments, does_not_contain: fragments }).optional(),
});
export type Expected = z.infer<typeof expected>;

const turn = z
  .strictObject({
    /** The short form of one event of the customer. */
    customer: text.optional(),
    events: z.array(event).min(1).max(MAX_EVENTS).optional(),
    expect: expected.default(expected.parse({})),
  })
  .refine(({ customer, events }) => (customer === undefined) !== (events === undefined), 'must have either customer or events');
export type ScenarioTurn = z.infer<typeof turn>;

/** An answer to a call of a tool. */
const toolAnswer = z
  .strictObject({
    /** The fields that the call's arguments must have at least; absent: any. */
    arguments: json.optional(),
    result: z.unknown().optional(),
    /** The tool's own failure, in words. */
    error: z.string().min(1).max(MAX_TEXT_CHARACTERS).optional(),
  })
  .refine((given) => 'result' in given !== (given.error !== undefined), 'must have either result or error');

const tool = z.strictObject({
  description: z.string().max(MAX_TEXT_CHARACTERS).optional(),
  /** JSON Schema of its arguments, as its server lists it. */
  input_schema: json.default({ type: 'object' }),
  answers: z.array(toolAnswer).min(1).max(MAX_CALLS),
});
export type ScenarioTool = z.infer<typeof tool>;

/** What the agent's search finds. */
const searched = z.strictObject({
  /** A part of the query, without regard to case; absent: any. */
  query: text.optional(),
  documents: z.array(z.strictObject({ content: text, title: z.string().max(1_000).optional(), url: z.string().max(2_000).optional() })).max(MAX_DOCUMENTS),
});

/** A conversation with what the agent has to decide in it: one YAML file. */
export const scenario = z.strictObject({
  title: z.string().min(1).max(500),
  /** When the conversation begins, RFC 3339; absent: now. */
  now: z.iso.datetime({ offset: true, error: 'must be a time like 2026-05-04T10:00:00Z' }).optional(),
  /** What is stored about the customer; absent: a guest. */
  customer: z.strictObject({ name: z.string().min(1).max(500).optional(), variables: json.default({}) }).optional(),
  tools: z.record(toolId, tool).default({}),
  /** The first that fits counts; a query that none fits finds nothing. Absent: the search fails, as where it can't be reached. */
  search: z.array(searched).min(1).max(MAX_LISTED).optional(),
  turns: z.array(turn).min(1).max(MAX_TURNS),
});
export type Scenario = z.infer<typeof scenario>;
