import type { ToolWork } from '#bus/messages/tool.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import { typeOf } from '#shared/contracts/documents/variable-set.ts';
import type { Database, NamedStatement } from '#shared/storage/database.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import { effectIds } from '../effect-ids.ts';
import { type CallToolDeps, partsOf } from './call-tool.ts';
import type { ToolOutcome } from './result-data.ts';

type FetchWork = Extract<ToolWork, { type: 'variable' }>;
type CallWork = Extract<ToolWork, { type: 'call' }>;

/** The one argument that a tool may take: whose value it is. */
const ARGUMENT = 'customer_id';

/**
 * Fetches the value of a variable by its tool, and stores it for the customer. Only tools that declare themselves read-only or idempotent are called, so that
 * a second call is harmless. A value that was written meanwhile stays. What fails is logged: the value stays stale.
 */
export async function fetchVariable(
  work: FetchWork,
  call: (work: CallWork) => Promise<ToolOutcome>,
  running: RunningItem,
  { bundles, lists, database, log }: CallToolDeps,
): Promise<void> {
  const { customerId, name, toolId, valueType, writtenAtMs, type: _, ...header } = work;
  const ids = { ...effectIds(work), variable: name, tool: toolId };
  const { serverId, toolName } = partsOf(toolId);
  const bundle = await retryWhileTransient(() => bundles.read(work.bundleHash), running.signal); // no fail point: reads
  const listing = await retryWhileTransient(() => lists.current(bundle, serverId), running.signal); // no fail point: inside
  if (!('listHash' in listing)) return;
  const tool = await retryWhileTransient(() => lists.tool(listing.listHash, toolName), running.signal); // no fail point: reads
  if (tool?.repeatable !== true) {
    log.warn(ids, 'a variable is not fetched: its tool is not listed, or declares itself neither read-only nor idempotent');
    return;
  }
  const takesId = Object.hasOwn(Object(tool.inputSchema['properties']), ARGUMENT);
  const given = takesId ? { [ARGUMENT]: customerId } : {};
  const outcome = await call({ ...header, type: 'call', toolId, listHash: listing.listHash, arguments: given }); // no fail point: inside
  if (outcome.type === 'failed') return;
  if (outcome.isError || outcome.data === null || typeOf(outcome.data) !== valueType) {
    log.warn({ ...ids, type: valueType }, 'a variable keeps its value: its tool answered with an error, or with a value of another type');
    return;
  }
  const data = JSON.stringify(outcome.data);
  await retryWhileTransient(() => store(database, { key: customerId, name, data, writtenAtMs }), running.signal); // no fail point: refreshes
}

async function store(database: Database, { key, name, data, writtenAtMs }: { key: string; name: string; data: string; writtenAtMs: number | null }) {
  // no fail point: caller
  await database.query(STORE, [key, name, data, writtenAtMs === null ? null : new Date(writtenAtMs)]);
}

/** Only for a customer that exists, as the API stores values, and only in place of the value that was found stale. */
const STORE: NamedStatement = {
  name: 'effect-worker-store-variable',
  text: `insert into variable_values as v (key, name, data, updated_at)
    select id, $2, $3::json, date_trunc('milliseconds', now()) from (select id from customers where id = $1 for key share) as customer
    on conflict (key, name) do update set data = excluded.data, updated_at = greatest(v.updated_at + interval '1 millisecond', excluded.updated_at)
      where date_trunc('milliseconds', v.updated_at) <= $4::timestamptz`,
};
