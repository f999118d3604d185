import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import { CommitPlan } from '../../runtime/apply/commit-plan.ts';
import type { CommandRows, DeliveryRow } from '../../runtime/apply/commit-rows.ts';
import type { SessionState } from '../../runtime/apply/session-state.ts';
import { commandRows } from '../../test-support/command-rows.ts';
import type { CommitResult } from '../port/commit-store.ts';
import type { PartitionClaim } from '../port/partition-store.ts';
import type { StoreUnderTest } from './store-under-test.ts';

export const AT_MS = Date.parse('2030-01-01T00:00:00Z');
const AT = new Date(AT_MS).toISOString();

/** A plan that moves the cursors of partitions by one. */
export function planOf(...claims: readonly PartitionClaim[]): CommitPlan {
  const plan = new CommitPlan();
  for (const claim of claims) plan.advance(claim, claim.cursor + 1, `@${claim.cursor + 1}`);
  return plan;
}

/** Commits a plan, and counts the claims on as the runtime does. */
export async function commit({ store }: StoreUnderTest, plan: CommitPlan): Promise<CommitResult> {
  const result = await store.commits.commit(plan);
  if (result.kind === 'repeated') return result;
  for (const [partition, { claim, cursor, cursorFingerprint }] of plan.partitions) {
    if (!result.owned.has(partition)) continue;
    Object.assign(claim, { commitNo: claim.commitNo + 1, cursor, cursorFingerprint });
  }
  return result;
}

export function sessionOf(id: string, { partition }: PartitionClaim, fields: Partial<SessionState> = {}): SessionState {
  const record = { id, customer_id: 'cus', created_at: AT, updated_at: AT, title: 'a title' } as SessionRecord;
  return { id, partition, head: 0, record, actors: {}, isDeleted: false, ...fields };
}

export function messageAt(offset: number, text = `message ${offset}`): ConversationEvent {
  return { kind: 'user_message', id: `evt_${offset}`, offset, source: 'customer', created_at: AT, trace_id: 't', metadata: {}, text };
}

export function statusAt(offset: number): ConversationEvent {
  const about = { id: `evt_${offset}`, offset, source: 'ai_agent' as const, created_at: AT, trace_id: 't', metadata: {} };
  return { ...about, kind: 'status', status: 'ready', stage: null, error_detail: null } as ConversationEvent;
}

export function callOf(id: string, { partition }: PartitionClaim, createdAtMs = AT_MS): EffectRow {
  const inputs = { template: 'compose@1' as const, bundleHash: 'b', upToOffset: 3, deadlineAtMs: AT_MS, traceparent: null };
  return { partition, id, sessionId: 'ses', actorId: 'trn', createdAtMs, kind: 'router-call', inputs };
}

export function roundOf(id: string, deliveryId: string, { partition }: PartitionClaim): EffectRow {
  const inputs = { deliveryId, deadlineAtMs: AT_MS, traceparent: null };
  return { partition, id, sessionId: 'ses', actorId: deliveryId, createdAtMs: AT_MS, kind: 'delivery', inputs };
}

export function deliveryOf(id: string, { partition }: PartitionClaim, url = 'https://example.com/'): DeliveryRow {
  return {
    ...{ partition, id, sessionId: 'ses', runId: 'run', url, hostAllowlist: null, bundleHash: 'b', idempotencyKey: id, traceId: 't', traceparent: null },
    ...{ body: '{}', createdAtMs: AT_MS },
  };
}

/** Records a command as processed. */
export function process(plan: CommitPlan, { partition }: PartitionClaim, sessionId: string, commandId: string, message = commandId, isReplaced = false): void {
  const reply = { ok: false, code: 'not_found', message } as never;
  plan.processed.set(`${sessionId} ${commandId}`, { partition, sessionId, commandId, reply, isReplaced });
}

/** What a command of the claim's partition writes. */
export function write(plan: CommitPlan, { partition }: PartitionClaim, rows: Partial<CommandRows>): void {
  plan.merge(commandRows({ partition, ...rows }));
}

export function append(plan: CommitPlan, claim: PartitionClaim, sessionId: string, event: ConversationEvent): void {
  write(plan, claim, { sessionId, events: [{ partition: claim.partition, sessionId, event, text: JSON.stringify(event) }] });
}

export function stage(plan: CommitPlan, claim: PartitionClaim, of: { sessionId: string; runId: string; seq: number }, message: object): void {
  write(plan, claim, { steps: [{ partition: claim.partition, ...of, message }] });
}

export function open(plan: CommitPlan, effect: EffectRow): void {
  plan.openEffect({ ...effect, state: 'open' });
}

export function close(plan: CommitPlan, claim: PartitionClaim, id: string, state: 'done' | 'superseded'): void {
  write(plan, claim, { closedEffects: [{ partition: claim.partition, id, state }] });
}

export function arm(plan: CommitPlan, { partition }: PartitionClaim, key: string, dueAtMs: number, command: string): void {
  plan.timers.set(key, { partition, key, dueAtMs, command });
}
