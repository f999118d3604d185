import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { z } from 'zod';
import type { ListedTool } from '#bus/messages/tool.ts';
import { workMarks } from '#shared/telemetry/work-marks.ts';
import type { Connection } from './connection.ts';
import type { RequestLimits } from './watch-request.ts';

/** Pages of one list. A server with more tools than they hold has something else wrong. */
const MAX_PAGES = 100;
/** Tools of one server. No model can choose among more. */
const MAX_TOOLS = 2_000;
const MAX_NAME_CHARACTERS = 256;

const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().nullish() });

const offeredTool = z.looseObject({
  name: z.string().min(1).max(MAX_NAME_CHARACTERS),
  title: z.string().nullish().catch(null),
  description: z.string().nullish().catch(null),
  inputSchema: z.record(z.string(), z.unknown()),
  annotations: z
    .looseObject({ title: z.string().nullish().catch(null), readOnlyHint: z.unknown().optional(), idempotentHint: z.unknown().optional() })
    .nullish()
    .catch(null),
  execution: z.looseObject({ taskSupport: z.unknown().optional() }).nullish().catch(null),
});

/** What a server offers, in its own order, without what can't be used; a warning for each thing that is left out. */
export interface ToolList {
  tools: ListedTool[];
  warnings: string[];
}

/** Asks for all pages of a server's list. @throws ToolFailure */
export async function readTools(connection: Connection, limits: RequestLimits): Promise<ToolList> {
  const list: ToolList = { tools: [], warnings: [] };
  const names = new Set<string>();
  const cursors = new Set<string>();
  const check = schemaCheck();
  let cursor: string | null = null;
  for (let pages = 1; ; pages += 1) {
    const { tools, nextCursor }: z.output<typeof page> = await connection.request('tools/list', cursor === null ? {} : { cursor }, page, limits);
    workMarks.mark('tool.list');
    for (const offered of tools) take(offered, list, names, check);
    cursor = nextCursor ?? null;
    if (cursor === null) return list;
    const trouble = cursors.has(cursor) ? 'it goes in a circle' : pages >= MAX_PAGES ? `it has more than ${MAX_PAGES} pages` : tooMany(list);
    if (trouble !== null) {
      list.warnings.push(`the list is not read further: ${trouble}`);
      return list;
    }
    cursors.add(cursor);
  }
}

function tooMany({ tools }: ToolList): string | null {
  return tools.length >= MAX_TOOLS ? `it has more than ${MAX_TOOLS} tools` : null;
}

function take(offered: unknown, { tools, warnings }: ToolList, names: Set<string>, check: SchemaCheck): void {
  const { success, data: tool } = offeredTool.safeParse(offered);
  const leaveOut = (why: string) => warnings.push(`the tool ${nameOf(offered)} is left out: ${why}`);
  if (!success) return void leaveOut('it has no name, or no schema of its arguments');
  if (names.has(tool.name)) return void leaveOut('another one has its name');
  if (tools.length >= MAX_TOOLS) return;
  if (tool.execution?.taskSupport === 'required') return void leaveOut('it only works as a task');
  const broken = check(tool.inputSchema);
  if (broken !== null) return void leaveOut(`the schema of its arguments is broken: ${broken}`);
  names.add(tool.name);
  const { title, description, inputSchema, annotations } = tool;
  tools.push({
    name: tool.name,
    title: title ?? annotations?.title ?? null,
    description: description ?? null,
    inputSchema,
    repeatable: annotations?.readOnlyHint === true || annotations?.idempotentHint === true,
  });
}

function nameOf(offered: unknown): string {
  const name = typeof offered === 'object' && offered !== null && 'name' in offered ? offered.name : null;
  return typeof name === 'string' ? JSON.stringify(name.slice(0, MAX_NAME_CHARACTERS)) : 'without a name';
}

/** Says why a schema can't be used, null when it can. References out of it are never followed, so one that has any can't be used. */
type SchemaCheck = (schema: Record<string, unknown>) => string | null;

/** One for a whole list: what it is made of takes longer than a tool's schema. */
function schemaCheck(): SchemaCheck {
  const options = { strict: false, validateFormats: false, addUsedSchema: false, logger: false } as const;
  const newer = new Ajv2020(options);
  let older: Ajv | null = null;
  return (schema) => {
    const isOld = typeof schema['$schema'] === 'string' && /draft-0[4-7]/.test(schema['$schema']);
    if (isOld) older ??= new Ajv(options);
    try {
      (isOld && older !== null ? older : newer).compile(schema);
      return null;
    } catch (error) {
      return error instanceof Error ? error.message.slice(0, MAX_NAME_CHARACTERS) : 'unknown';
    }
  };
}
