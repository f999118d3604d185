import { z } from 'zod';
import { carriedContext } from '#shared/telemetry/carried-context.ts';
import { actorShape, withActorFields } from './actor-fields.ts';

/**
 * The newest version that this release reads. It writes version 1 (ADR 37), and newer ones of items that workers of releases before do not know and leave to
 * newer workers.
 */
export const TOOL_WORK_VERSION = 4;
/** Of searches at a service. */
export const SEARCH_VERSION = 3;
/** Of searches by a vector. */
export const VECTOR_SEARCH_VERSION = 4;

const header = {
  v: z.literal([1, 2, SEARCH_VERSION, VECTOR_SEARCH_VERSION]),
  /** Id of the effect, of the item, and of the result's command. */
  effectId: z.string(),
  sessionId: z.string(),
  /** The turn or run that waits for it. */
  ...actorShape,
  /** The bundle that names the tool servers. */
  bundleHash: z.string(),
  /** Epoch milliseconds after which it is not begun, and is aborted if it runs. */
  deadlineAtMs: z.number(),
  createdAtMs: z.number(),
  /** May have been published before, as after a take-over: the worker first checks the effect's row. */
  republished: z.boolean(),
  /** W3C trace context; null when there is none. */
  traceparent: z.string().nullable(),
};

/** Lists the tools of the named servers. The lists are stored by hash; the result names the hashes. */
const listTools = z.object({ ...header, type: z.literal('list'), servers: z.array(z.string()) });

const callTool = z.object({
  ...header,
  type: z.literal('call'),
  /** `server:tool`, with the server's own name of the tool. */
  toolId: z.string(),
  /** The tool list that the call was made from; it says whether the call is repeatable. */
  listHash: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  /** What the turn's caller sent beside its `traceparent`. Absent: nothing. */
  carried: carriedContext.optional(),
});

/** Fetches the value of a variable for a customer, and stores it. It has no effect's row, and nothing is reported: readers find the value. */
const fetchVariable = z.object({
  ...header,
  type: z.literal('variable'),
  toolId: z.string(),
  customerId: z.string(),
  name: z.string(),
  /** Of its values, as the variable set declares it. */
  valueType: z.string(),
  /** Of the value that is replaced, epoch milliseconds: another one stays. Null: there is none. */
  writtenAtMs: z.number().nullable(),
});

/** Retrieves documents for a turn. */
const search = z.object({
  ...header,
  type: z.literal('search'),
  /** What is searched for; empty: nothing. */
  query: z.string(),
  /** Newest messages of the conversation, oldest first. */
  messages: z.array(z.object({ role: z.enum(['user', 'assistant', 'system']), text: z.string(), createdAt: z.string() })),
  /** Of the query: 32-bit floats, little endian, in base64. Absent: the documents are not found by vectors. */
  vector: z.string().optional(),
});

/** One item on `work.tool`, of version 1 to 4; its message id is the effect's id. */
export const toolWork = z.preprocess(withActorFields, z.discriminatedUnion('type', [listTools, callTool, fetchVariable, search]));
export type ToolWork = z.infer<typeof toolWork>;

/** `tool_lists.body` is an array of these, in the server's order. */
export const listedTool = z.object({
  name: z.string(),
  title: z.string().nullable(),
  description: z.string().nullable(),
  inputSchema: z.record(z.string(), z.unknown()),
  /** Of structured results; absent when the server gives none, and from lists of older releases. */
  outputSchema: z.record(z.string(), z.unknown()).optional(),
  /** The server declares the call read-only or idempotent: an unknown outcome then costs only a second call. */
  repeatable: z.boolean(),
});
export type ListedTool = z.infer<typeof listedTool>;
