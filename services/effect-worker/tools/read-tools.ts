import { setImmediate as nextTick } from 'node:timers/promises';
import { z } from 'zod';
import type { ListedTool } from '#bus/messages/tool.ts';
import { nestingViolation } from '#shared/json-schema.ts';
import { workMarks } from '#shared/telemetry/work-marks.ts';
import { ByteBudget } from './byte-budget.ts';
import type { Connection } from './connection.ts';
import { paramFaultOf } from './param-headers.ts';
import { faultOfForm, MAX_SCHEMA_DEPTH } from './schema-form.ts';
import { ToolFailure } from './tool-failure.ts';
import type { RequestLimits } from './watch-request.ts';

/** More are taken for a fault of the server. */
const MAX_PAGES = 100;
/** Usable or not. No model can choose among more. */
const MAX_TOOLS = 2_000;
/** JSON of one server's stored tools: one row, read by each run that uses the server. */
const MAX_LIST_BYTES = 512 * 1024;
/** All pages, with what is not stored (icons). A page is parsed in one go, at about 20 ms per MiB. */
const MAX_RESPONSES_BYTES = 4 * MAX_LIST_BYTES;
/** Further ones are only counted. */
const MAX_WARNINGS = 20;
const MAX_NAME_CHARACTERS = 256;

const page = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().nullish(), ttlMs: z.number().nullish().catch(null) });

const advertisedTool = z.looseObject({
  name: z.string().min(1).max(MAX_NAME_CHARACTERS),
  title: z.string().nullish().catch(null),
  description: z.string().nullish().catch(null),
  inputSchema: z.record(z.string(), z.unknown()),
  outputSchema: z.record(z.string(), z.unknown()).nullish(),
  annotations: z
    .looseObject({ title: z.string().nullish().catch(null), readOnlyHint: z.unknown().optional(), idempotentHint: z.unknown().optional() })
    .nullish()
    .catch(null),
  execution: z.looseObject({ taskSupport: z.unknown().optional() }).nullish().catch(null),
});

/** The usable tools in the server's order, and a warning for each one left out, up to `MAX_WARNINGS`. */
export interface ToolList {
  tools: ListedTool[];
  warnings: string[];
  /** How long the server says that it stays as it is; null when it does not say. */
  ttlMs: number | null;
}

/** Reads all pages of a server's tool list. @throws ToolFailure */
export async function readTools(connection: Connection, limits: Omit<RequestLimits, 'budget'>): Promise<ToolList> {
  const list = new ToolListBuilder(connection.era.kind === 'modern');
  let ttlMs: number | null = null;
  const budget = new ByteBudget(MAX_RESPONSES_BYTES);
  const cursors = new Set<string>();
  let cursor: string | null = null;
  for (let pages = 1; ; pages += 1) {
    // no fail point: requests
    const response: z.output<typeof page> = await connection.request('tools/list', cursor === null ? {} : { cursor }, page, { ...limits, budget });
    cursor = response.nextCursor ?? null;
    if (typeof response.ttlMs === 'number') ttlMs = Math.min(ttlMs ?? response.ttlMs, response.ttlMs);
    const stopReason = (await list.add(response.tools, limits.signal)) ?? stopReasonOf(cursor, cursors, pages); // no fail point: waits
    if (stopReason !== null) return list.built(ttlMs, `the list is not read further: ${stopReason}`);
    if (cursor === null) return list.built(ttlMs, null);
    cursors.add(cursor);
  }
}

/** Why the next page is not read; null when it is, or when there is none. */
function stopReasonOf(cursor: string | null, earlier: ReadonlySet<string>, pages: number): string | null {
  if (cursor === null) return null;
  if (earlier.has(cursor)) return 'a cursor is repeated';
  return pages >= MAX_PAGES ? `it has more than ${MAX_PAGES} pages` : null;
}

class ToolListBuilder {
  /** Whether calls carry headers made from their arguments. */
  readonly #hasParamHeaders: boolean;
  readonly #tools: ListedTool[] = [];
  readonly #names = new Set<string>();
  readonly #warnings: string[] = [];
  #leftOut = 0;
  #advertised = 0;
  #sizeBytes = 0;

  constructor(hasParamHeaders: boolean) {
    this.#hasParamHeaders = hasParamHeaders;
  }

  /**
   * Adds a page's tools, one per tick: the server decides how many there are and how long each takes.
   * @returns why nothing more fits; null when more may come
   * @throws ToolFailure `stopped` when the signal is aborted
   */
  async add(advertised: readonly unknown[], signal: AbortSignal): Promise<string | null> {
    for (const one of advertised) {
      if (signal.aborted) throw new ToolFailure('stopped', 'the call was cancelled', { sent: true });
      if (this.#advertised >= MAX_TOOLS) return `it has more than ${MAX_TOOLS} tools`;
      this.#advertised += 1;
      if (!this.#take(one)) return `its tools are more than ${MAX_LIST_BYTES} bytes of JSON`;
      await nextTick(); // no fail point: waits
      workMarks.mark('tool.list');
    }
    return null;
  }

  built(ttlMs: number | null, ending: string | null): ToolList {
    const further = this.#leftOut - this.#warnings.length;
    const count = further > 0 ? [`${further} more tools are left out`] : [];
    return { tools: this.#tools, warnings: [...this.#warnings, ...count, ...(ending === null ? [] : [ending])], ttlMs };
  }

  /** @returns false when the list is full; true also for a tool that is left out */
  #take(advertised: unknown): boolean {
    const { success, data: tool } = advertisedTool.safeParse(advertised);
    if (!success) return this.#leaveOut(advertised, 'it has no name, or no schema of its arguments');
    if (this.#names.has(tool.name)) return this.#leaveOut(advertised, 'another one has its name');
    if (tool.execution?.taskSupport === 'required') return this.#leaveOut(advertised, 'it only works as a task');
    const { title, description, inputSchema, annotations } = tool;
    const outputSchema = tool.outputSchema ?? null;
    const isBroken = (of: string, fault: string) => this.#leaveOut(advertised, `the schema of its ${of} is broken: ${fault}`);
    const tooDeep = nestingViolation(inputSchema, MAX_SCHEMA_DEPTH);
    if (tooDeep !== null) return isBroken('arguments', tooDeep.message);
    const resultsTooDeep = nestingViolation(outputSchema, MAX_SCHEMA_DEPTH);
    if (resultsTooDeep !== null) return isBroken('results', resultsTooDeep.message);
    const listed = {
      name: tool.name,
      title: title ?? annotations?.title ?? null,
      description: description ?? null,
      inputSchema,
      ...(outputSchema === null ? {} : { outputSchema }),
      repeatable: annotations?.readOnlyHint === true || annotations?.idempotentHint === true,
    };
    // Counted even if the tool is left out: the time of the check is proportional to the size.
    this.#sizeBytes += Buffer.byteLength(JSON.stringify(listed));
    if (this.#sizeBytes > MAX_LIST_BYTES) return false;
    const fault = faultOfForm(inputSchema) ?? (this.#hasParamHeaders ? paramFaultOf(inputSchema) : null);
    if (fault !== null) return isBroken('arguments', fault);
    const resultFault = outputSchema === null ? null : faultOfForm(outputSchema);
    if (resultFault !== null) return isBroken('results', resultFault);
    this.#names.add(tool.name);
    this.#tools.push(listed);
    return true;
  }

  #leaveOut(advertised: unknown, why: string): true {
    this.#leftOut += 1;
    if (this.#warnings.length < MAX_WARNINGS) this.#warnings.push(`the tool ${nameOf(advertised)} is left out: ${why}`);
    return true;
  }
}

function nameOf(advertised: unknown): string {
  const name = typeof advertised === 'object' && advertised !== null && 'name' in advertised ? advertised.name : null;
  return typeof name === 'string' ? JSON.stringify(name.slice(0, MAX_NAME_CHARACTERS)) : 'without a name';
}
