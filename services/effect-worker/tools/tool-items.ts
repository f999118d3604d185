import { actorFields } from '#bus/messages/actor-fields.ts';
import { TOOL_WORK_VERSION, type ToolWork, toolWork } from '#bus/messages/tool.ts';
import type { ReceivedAborts } from '#bus/received-aborts.ts';
import type { LeaseTimes } from '#bus/renew-lease.ts';
import type { ItemKind, Refusal } from '#services/work/item-kind.ts';
import { itemEndReasons, type RunningItem } from '#services/work/running-items.ts';
import { isEffectOpen } from '#shared/effects/effect-state.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { ContentCapture } from '#shared/telemetry/tracing.ts';
import { effectIds } from '../effect-ids.ts';
import { parsedItem } from '../parsed-item.ts';
import { type RunSearchDeps, runSearch } from '../search/run-search.ts';
import { type CallToolDeps, callTool, failed, outcomeUnknown } from './call-tool.ts';
import { isClaimed } from './claims.ts';
import { fetchVariable } from './fetch-variable.ts';
import type { ToolOutcome } from './result-data.ts';
import type { Listing } from './tool-lists.ts';
import { endToolSpan, type ToolReport, toolTrace } from './tool-trace.ts';

type ListWork = Extract<ToolWork, { type: 'list' }>;

interface ToolItemsDeps extends CallToolDeps, RunSearchDeps {
  aborts: ReceivedAborts;
  content: ContentCapture;
  concurrency: number;
  lease: LeaseTimes;
}

/** Tool calls, reads of tool lists, values of variables, and searches. */
export function toolItems(deps: ToolItemsDeps): ItemKind<ToolWork, ToolReport> {
  const { aborts, content, concurrency, lease, clock } = deps;
  return {
    name: 'tool',
    concurrency,
    lease,
    bodyBytes: null,
    newestVersion: TOOL_WORK_VERSION,
    needsEffectRow: true,
    deadLetters: 'tool',
    writesOwnLine: false,
    storesCancelled: false,
    endReasons: itemEndReasons,
    parse: (body) => parsedItem(toolWork, body),
    header: ({ effectId: id, sessionId, republished, traceparent }) => ({ id, sessionId, republished, traceparent }),
    ids: effectIds,
    remainingMs: ({ deadlineAtMs }) => deadlineAtMs - clock.nowMs(),
    watch: ({ effectId }, running) => running.onRelease(aborts.follow(effectId, { onAbort: () => running.end('cancelled') })),
    trace: { of: (work) => toolTrace(work, content), end: (report, running) => endToolSpan(report, running, content) },
    async execute(work, running) {
      if (work.type === 'list') return listTools(work, running, deps);
      if (work.type === 'variable') {
        await fetchVariable(work, (call) => measured(deps.metrics, () => callTool(call, running, deps, always)), running, deps); // no fail point: inside
        return null;
      }
      if (work.type === 'search') return completed(work, await runSearch(work, running, deps)); // no fail point: reads
      const isAwaited = async () => (await isEffectOpen(deps.database, work.effectId)) === true; // no fail point: reads
      return completed(work, await measured(deps.metrics, () => callTool(work, running, deps, isAwaited))); // no fail point: inside
    },
    refuse: (work, refusal, running) => refuse(work, refusal, running, deps),
    commandOf: (_, report) => report,
  };
}

/** Values of variables are fetched for no actor: they have no effect's row. */
const always = async () => true;

async function refuse(work: ToolWork, { why }: Refusal, running: RunningItem, { database }: ToolItemsDeps): Promise<ToolReport | null> {
  if (why === 'cancelled' || work.type === 'variable') return null;
  if (work.type === 'list') return why === 'deadline' ? { ...noneListed(work), timedOut: true } : noneListed(work);
  if (work.type === 'search')
    return completed(work, why === 'deadline' ? failed('timeout', 'the search came too late') : failed('unreachable', 'the search was given up'));
  if (why !== 'deadline') return completed(work, outcomeUnknown());
  // Another delivery may have begun it before the deadline.
  const isStarted = running.mayBeStarted && (await retryWhileTransient(() => isClaimed(database, work.effectId), running.leaseLost)); // no fail point: reads
  return completed(work, isStarted ? outcomeUnknown() : failed('timeout', 'the call came too late to be begun'));
}

/** Throws for a lost lease or a cancelled item, which are not counted. */
async function measured(metrics: Metrics, call: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  const startedAtMs = performance.now();
  const outcome = await call(); // no fail point: inside
  metrics.observe('toolSeconds', {}, (performance.now() - startedAtMs) / 1_000);
  metrics.add('toolCalls', { outcome: outcome.type === 'failed' ? outcome.reason : outcome.isError ? 'error' : 'result' });
  return outcome;
}

function completed({ actorId }: ToolWork, outcome: ToolOutcome): ToolReport {
  return { type: 'tool.completed', ...actorFields(actorId), outcome };
}

async function listTools({ servers, bundleHash, actorId }: ListWork, running: RunningItem, { bundles, lists }: CallToolDeps): Promise<ToolReport> {
  const bundle = await retryWhileTransient(() => bundles.read(bundleHash), running.signal); // no fail point: reads
  // no fail point: inside (2)
  const listed = await Promise.all(
    servers.map(
      async (id) =>
        [
          id,
          await untilOver(
            retryWhileTransient(() => lists.current(bundle, id), running.signal),
            running.signal,
          ),
        ] as const,
    ),
  );
  running.leaseLost.throwIfAborted();
  const report = {
    type: 'tools.listed' as const,
    ...actorFields(actorId),
    timedOut: running.signal.aborted && !running.isCancelled(),
    lists: {} as Record<string, string>,
    unavailable: {} as Record<string, 'unreachable' | 'auth_failed'>,
  };
  for (const [id, listing] of listed) {
    if ('listHash' in listing) report.lists[id] = listing.listHash;
    else report.unavailable[id] = listing.unavailable;
  }
  return report;
}

function noneListed({ servers, actorId }: ListWork): Extract<ToolReport, { type: 'tools.listed' }> {
  return { type: 'tools.listed', ...actorFields(actorId), lists: {}, unavailable: Object.fromEntries(servers.map((id) => [id, 'unreachable' as const])) };
}

/** A server without a list at the deadline has no tools for this run; other callers may still wait for it. */
function untilOver(listing: Promise<Listing>, signal: AbortSignal): Promise<Listing> {
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve({ unavailable: 'unreachable' });
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    listing.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort)); // no fail point: waits
  });
}
