import { actorFields } from '#bus/messages/actor-fields.ts';
import { TOOL_WORK_VERSION, type ToolWork, toolWork } from '#bus/messages/tool.ts';
import { partitionOf } from '#bus/partition.ts';
import type { ReceivedAborts } from '#bus/received-aborts.ts';
import { storeDeadLetter } from '#shared/effects/store-dead-letter.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import type { ContentCapture } from '#shared/telemetry/tracing.ts';
import type { ItemExecution, ItemKind } from '#services/work/consume-kind.ts';
import { endToolSpan, toolTrace } from '#services/work/item-span.ts';
import type { Report } from '#services/work/report-result.ts';
import { type CallToolDeps, callTool, failed, outcomeUnknown } from './call-tool.ts';
import { isClaimed } from './claims.ts';
import type { ToolOutcome } from './result-data.ts';
import type { Listing } from './tool-lists.ts';

type ListWork = Extract<ToolWork, { type: 'list' }>;

/** Handles the items of kind `tool`: tool calls and reads of tool lists. */
export function toolItems(deps: CallToolDeps & { aborts: ReceivedAborts; content: ContentCapture }): ItemKind<ToolWork> {
  return {
    name: 'tool',
    schema: toolWork,
    newestVersion: TOOL_WORK_VERSION,
    needsEffectRow: true,
    aborts: deps.aborts,
    trace: { of: (work) => toolTrace(work, deps.content), end: (span, report) => endToolSpan(span, report, deps.content) },
    async perform(work, execution) {
      if (work.type === 'list') return listTools(work, execution, deps);
      return completed(work, await measured(deps.metrics, () => callTool(work, execution, deps))); // no fail point: inside
    },
    async skip(work, execution) {
      if (work.type === 'list') return { ...noneListed(work), timedOut: true };
      // Another delivery may have begun it before the deadline.
      const isStarted = execution.mayBeStarted && (await retryWhileTransient(() => isClaimed(deps.database, work.effectId), execution.leaseLost)); // no fail point: reads
      return completed(work, isStarted ? outcomeUnknown() : failed('timeout', 'the call came too late to be begun'));
    },
    async giveUp(work, reason, body, execution) {
      const letter = { id: work.effectId, source: 'tool', partition: partitionOf(work.sessionId), reason, body } as const;
      await retryWhileTransient(() => storeDeadLetter(deps.database, letter), execution.leaseLost); // no fail point: dead-letters
      deps.metrics.add('deadLetters', { source: 'tool' });
      return work.type === 'list' ? noneListed(work) : completed(work, outcomeUnknown());
    },
  };
}

/** Throws for a lost lease or a cancelled item, which are not counted. */
async function measured(metrics: Metrics, call: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  const startedAtMs = performance.now();
  const outcome = await call(); // no fail point: inside
  metrics.observe('toolSeconds', {}, (performance.now() - startedAtMs) / 1_000);
  metrics.add('toolCalls', { outcome: outcome.type === 'failed' ? outcome.reason : outcome.isError ? 'error' : 'result' });
  return outcome;
}

function completed({ actorId }: ToolWork, outcome: ToolOutcome): Report {
  return { type: 'tool.completed', ...actorFields(actorId), outcome };
}

async function listTools({ servers, bundleHash, actorId }: ListWork, execution: ItemExecution, { bundles, lists }: CallToolDeps): Promise<Report> {
  const bundle = await retryWhileTransient(() => bundles.read(bundleHash), execution.signal); // no fail point: reads
  // no fail point: inside (2)
  const listed = await Promise.all(
    servers.map(
      async (id) =>
        [
          id,
          await untilOver(
            retryWhileTransient(() => lists.current(bundle, id), execution.signal),
            execution.signal,
          ),
        ] as const,
    ),
  );
  execution.leaseLost.throwIfAborted();
  const report = {
    type: 'tools.listed' as const,
    ...actorFields(actorId),
    timedOut: execution.signal.aborted && !execution.isCancelled(),
    lists: {} as Record<string, string>,
    unavailable: {} as Record<string, 'unreachable' | 'auth_failed'>,
  };
  for (const [id, listing] of listed) {
    if ('listHash' in listing) report.lists[id] = listing.listHash;
    else report.unavailable[id] = listing.unavailable;
  }
  return report;
}

function noneListed({ servers, actorId }: ListWork): Report {
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
