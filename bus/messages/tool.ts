import { z } from 'zod';

const header = {
  v: z.literal(1),
  /** Id of the effect, of the item, and of the command that brings the result. */
  effectId: z.string(),
  sessionId: z.string(),
  /** The turn or the run that waits for it. */
  turnId: z.string(),
  /** The configuration that names the tool servers. */
  bundleHash: z.string(),
  /** Epoch milliseconds after which it is not begun, and given up if it runs. */
  deadlineAtMs: z.number(),
  createdAtMs: z.number(),
  /** Whether the item may have been on the bus before, as after a take-over: its worker looks at the effect's row first. */
  republished: z.boolean(),
  /** W3C trace context; null when there is none. */
  traceparent: z.string().nullable(),
};

/** Asks for the tools that the named servers list; the lists are stored by hash and the result names the hashes. */
const listTools = z.object({ ...header, type: z.literal('list'), servers: z.array(z.string()) });

const callTool = z.object({
  ...header,
  type: z.literal('call'),
  /** `server:tool`, the tool's own name at its server. */
  toolId: z.string(),
  /** The list that the call was made from: it says whether the call may be repeated. */
  listHash: z.string(),
  arguments: z.record(z.string(), z.unknown()),
});

/** One item on `work.tool`; its message id is the effect's id. */
export const toolWork = z.discriminatedUnion('type', [listTools, callTool]);
export type ToolWork = z.infer<typeof toolWork>;

/** A tool as its server lists it, in a stored list (`tool_lists.body` is an array of these, in the server's order). */
export const listedTool = z.object({
  name: z.string(),
  title: z.string().nullable(),
  description: z.string().nullable(),
  /** JSON Schema of the arguments. */
  inputSchema: z.record(z.string(), z.unknown()),
  /** Whether the server says that the call changes nothing, or that it may be repeated: then a lost outcome costs only a second call. */
  repeatable: z.boolean(),
});
export type ListedTool = z.infer<typeof listedTool>;
