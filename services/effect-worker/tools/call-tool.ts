import { setTimeout as pause } from 'node:timers/promises';
import type { ListedTool, ToolWork } from '#bus/messages/tool.ts';
import type { RunningItem } from '#services/work/running-items.ts';
import type { Clock } from '#shared/clock.ts';
import type { BundleCache } from '#shared/config/bundle-cache.ts';
import { failPoint } from '#shared/fail-points.ts';
import { ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';
import { retryWhileTransient } from '#shared/storage/retry-while-transient.ts';
import { genAi } from '#shared/telemetry/gen-ai.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { Metrics } from '#shared/telemetry/metrics.ts';
import { effectIds } from '../effect-ids.ts';
import { orStopped, withAttempts } from './attempts.ts';
import { claimCall } from './claims.ts';
import { paramHeadersOf } from './param-headers.ts';
import { callResponse, checkedResult, errorResult, resultOf, type ToolOutcome } from './result-data.ts';
import { ToolFailure } from './tool-failure.ts';
import type { ToolLists } from './tool-lists.ts';
import type { ToolServer } from './tool-server.ts';
import type { ToolServers } from './tool-servers.ts';

/** JSON-RPC codes. */
const METHOD_NOT_FOUND = -32_601;
const INVALID_PARAMS = -32_602;
/** The headers made from the arguments do not fit: the tool's schema is another one now. */
const HEADER_MISMATCH = -32_020;
/** They mean that the list which the call was made from is old. */
const STALE_LIST = new Set<number | null>([METHOD_NOT_FOUND, INVALID_PARAMS, HEADER_MISMATCH]);

/** For the worker that has claimed a call to report its outcome, where it was only cut off from the broker. */
const CLAIMANT_MS = 3_000;

type ToolCall = Extract<ToolWork, { type: 'call' }>;

export interface CallToolDeps {
  database: Database;
  bundles: BundleCache;
  servers: ToolServers;
  lists: ToolLists;
  /** Since the last progress. */
  timeoutMs: number;
  /** In all. */
  longestMs: number;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

/** Another worker has claimed the call. */
class Claimed extends Error {}

/**
 * Calls a tool, at most once unless it is repeatable. Every result is an outcome; it throws only for a lost lease, or when the call was cancelled.
 * @param isAwaited asked right before a call that is not claimed: a worker that was not connected when its run or turn ended has missed the abort
 */
export async function callTool(work: ToolCall, running: RunningItem, deps: CallToolDeps, isAwaited: () => Promise<boolean>): Promise<ToolOutcome> {
  const { database, bundles, servers, lists, log } = deps;
  const { serverId, toolName } = partsOf(work.toolId);
  const bundle = await retryWhileTransient(() => bundles.read(work.bundleHash), running.signal); // no fail point: reads (2)
  const server = servers.of(bundle, serverId);
  if (server === null) return failed('refused', `there is no tool server "${serverId}"`);
  const tool = await retryWhileTransient(() => lists.tool(work.listHash, toolName), running.signal);
  const repeatable = tool?.repeatable ?? false;
  running.span?.set({ [genAi.toolDescription]: tool?.description ?? undefined });
  const claimant = ulid();
  const claim = async () => {
    // A claimed call must settle: aborts are ignored from here on.
    running.protect();
    if (!(await retryWhileTransient(() => claimCall(database, work.effectId, claimant), running.signal))) throw new Claimed();
    failPoint('tool.claimed');
    running.leaseLost.throwIfAborted();
    // No other worker may make the call, so nothing is won by ending it: its outcome is reported when the broker is back.
    running.keep();
  };
  // By this delivery: its further tries pass.
  let hasBegun = false;
  const begin = async () => {
    // Its outcome may have been reported as unknown.
    if (hasBegun && running.isLeaseOver) throw new ToolFailure('stopped', 'the lease of the call is over');
    if (hasBegun) return;
    if (running.isCancelled()) throw new ToolFailure('stopped', 'the call was cancelled');
    await (repeatable ? endUnless(isAwaited, running) : claim()); // no fail point: inside
    hasBegun = true;
  };
  try {
    return await request(work, { name: toolName, tool, server }, begin, running, deps); // no fail point: inside
  } catch (error) {
    running.leaseLost.throwIfAborted();
    if (running.isCancelled()) throw error;
    if (error instanceof Claimed) return ofClaimant(running);
    if (!(error instanceof ToolFailure)) throw error;
    // The tool's own error text may repeat the arguments, so it goes to the model and not to the log.
    const why = error.kind === 'error' ? { rpc_code: error.rpcCode } : { err: error };
    log.warn({ ...effectIds(work), tool: work.toolId, failure: error.kind, status: error.status, ...why }, 'a tool call has failed');
    if (error.rpcCode !== null) running.span?.set({ 'rpc.response.status_code': String(error.rpcCode) });
    // It is listed again, which also notes that it refuses the key.
    if (STALE_LIST.has(error.rpcCode) || error.kind === 'auth_failed') server.isListStale = true;
    return outcomeOf(error, repeatable);
  }
}

/** Of two results the log takes the first: that of the worker that has made the call, if it comes within the time. A call that no delivery has begun was withdrawn. */
async function ofClaimant(running: RunningItem): Promise<ToolOutcome> {
  if (running.mayBeStarted) await pause(CLAIMANT_MS, undefined, { signal: running.signal }).catch(() => {}); // no fail point: waits
  running.leaseLost.throwIfAborted();
  return outcomeUnknown();
}

async function endUnless(isAwaited: () => Promise<boolean>, running: RunningItem): Promise<void> {
  if (await retryWhileTransient(isAwaited, running.signal)) return; // no fail point: reads
  running.end('cancelled');
  throw new ToolFailure('stopped', 'the call is not awaited any more');
}

async function request(
  work: ToolCall,
  { name, tool, server }: { name: string; tool: ListedTool | null; server: ToolServer },
  begin: () => Promise<void>,
  running: RunningItem,
  { timeoutMs, longestMs, clock }: CallToolDeps,
): Promise<ToolOutcome> {
  const { signal } = running;
  const traceparent = running.span?.traceparent ?? work.traceparent;
  const meta = traceparent === null ? {} : { _meta: { traceparent, ...work.carried } };
  const params = { name, arguments: work.arguments, ...meta };
  // Of the last attempt.
  const onId = (id: string) => running.span?.set({ 'jsonrpc.request.id': id });
  const attempt = () =>
    server.connected(async (connection) => {
      running.span?.set({ 'mcp.protocol.version': connection.version ?? undefined });
      await begin(); // no fail point: inside
      const headers = tool !== null && connection.era.kind === 'modern' ? paramHeadersOf(tool.inputSchema, work.arguments) : {};
      const response = await connection.request('tools/call', params, callResponse, { signal, timeoutMs, longestMs, headers, onId });
      failPoint('tool.answered');
      return checkedResult(resultOf(response), response.structuredContent, tool?.outputSchema ?? null);
    });
  const attempts = { repeatable: tool?.repeatable ?? false, signal, deadlineAtMs: work.deadlineAtMs, clock };
  return withAttempts(attempts, () => orStopped(signal, server.slots.withSlot(signal, attempt)));
}

/** Maps a failure to the outcome that the waiting run gets. */
function outcomeOf(failure: ToolFailure, repeatable: boolean): ToolOutcome {
  const mayHaveHappened = failure.sent && !repeatable;
  switch (failure.kind) {
    case 'auth_failed':
      return failed('auth_failed', failure.message);
    case 'unreachable':
    case 'busy':
      return failed('unreachable', failure.message);
    case 'session_lost':
      return failed(failure.status === 400 ? 'refused' : 'unreachable', failure.message);
    case 'lost':
      return mayHaveHappened ? outcomeUnknown() : failed('unreachable', failure.message);
    case 'timeout':
    case 'stopped':
      return mayHaveHappened ? outcomeUnknown() : failed('timeout', 'the tool did not answer in time');
    case 'error':
      return STALE_LIST.has(failure.rpcCode) ? failed('refused', failure.message) : errorResult(failure.message);
    case 'unreadable':
      return errorResult(failure.message);
  }
}

export function outcomeUnknown(): ToolOutcome {
  return failed('outcome_unknown', 'it is not known whether the call was carried out; it was not tried again');
}

export function failed(reason: Extract<ToolOutcome, { type: 'failed' }>['reason'], message: string): ToolOutcome {
  return { type: 'failed', reason, message };
}

/** Splits `server:tool`; the tool's name may contain colons. */
export function partsOf(toolId: string): { serverId: string; toolName: string } {
  const colon = toolId.indexOf(':');
  return colon < 0 ? { serverId: '', toolName: toolId } : { serverId: toolId.slice(0, colon), toolName: toolId.slice(colon + 1) };
}
