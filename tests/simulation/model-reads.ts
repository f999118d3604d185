import type { EffectRow } from '../../actors/effects/effect-row.ts';
import { RETRY_SUFFIX } from '../../actors/kinds/delivery/rounds.ts';
import type { CustomerStore } from '../../actors/store/port/customer-store.ts';
import type { EffectStore } from '../../actors/store/port/effect-store.ts';
import type { RunStore, StoredRun } from '../../actors/store/port/run-store.ts';
import type { SessionStore, StoredSession } from '../../actors/store/port/session-store.ts';
import type { TimerStore } from '../../actors/store/port/timer-store.ts';
import type { TurnStore } from '../../actors/store/port/turn-store.ts';
import { cutOf } from '../../actors/test-support/cut-of.ts';
import type { StepMessage } from '../../actors/tool-loop/types.ts';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { ModelTables, Row } from './model-rows.ts';
import type { Executed, Withdrawal } from './model-store.ts';

const MESSAGES: ReadonlySet<unknown> = new Set(['user_message', 'assistant_message', 'preamble', 'tool']);

export function sessionsOf(tables: ModelTables): Executed<SessionStore> {
  return {
    load: (sessionIds) =>
      pick(tables.sessions, sessionIds).map((row) => ({
        ...{ id: row['id'] as string, partition: row['p'] as number, head: row['head'] as number },
        ...{ snapshot: jsonOf(row['snapshot']), record: jsonOf(row['record']) as StoredSession['record'], isDeleted: row['deleted_at'] !== null },
      })),

    event(sessionId, eventId) {
      const row = liveIn(tables, sessionId).find(({ id }) => id === eventId);
      return row === undefined ? null : (jsonOf(row['body']) as ConversationEvent);
    },

    cut(sessionId, minOffset) {
      return cutOf(
        liveIn(tables, sessionId).map((row) => jsonOf(row['body']) as ConversationEvent),
        minOffset,
      );
    },

    messages: (sessionId, upToOffset, limit) =>
      liveIn(tables, sessionId)
        .filter(({ off, kind }) => (off as number) <= upToOffset && MESSAGES.has(kind))
        .slice(-limit)
        .map((row) => jsonOf(row['body']) as ConversationEvent),
  };
}

/** Events that are not deleted, in order. */
function liveIn(tables: ModelTables, sessionId: string): Row[] {
  const live = [...(tables.events.get(sessionId)?.values() ?? [])].filter((row) => row['deleted_at'] === null);
  return live.sort((left, right) => (left['off'] as number) - (right['off'] as number));
}

export function timersOf(tables: ModelTables): Executed<TimerStore> {
  return {
    of: (partitions) =>
      [...tables.timers.values()]
        .filter(({ p }) => partitions.includes(p as number))
        .map((row) => ({ partition: row['p'] as number, key: row['key'] as string, dueAtMs: msOf(row['due_at']), command: row['command'] as string })),
  };
}

export function effectsOf(tables: ModelTables, nowMs: () => number, withdrawal: Withdrawal = 'binding'): Executed<EffectStore> {
  const isBegun = (id: string) => tables.claims.get(id)?.['withdrawn'] === false;
  return {
    open: (partitions) =>
      [...tables.effects.values()]
        .flat()
        .filter(({ state, p }) => state === 'open' && partitions.includes(p as number))
        .sort((left, right) => msOf(left['created_at']) - msOf(right['created_at']))
        .map((row) => ({
          effect: {
            ...{ partition: row['p'] as number, id: row['id'] as string, sessionId: row['session_id'] as string, actorId: row['turn_id'] as string },
            createdAtMs: msOf(row['created_at']),
            ...{ kind: row['kind'] as string, inputs: jsonOf(row['inputs']) as EffectRow['inputs'] },
          },
          isUnpublished: row['unpublished'] as boolean,
          // The schedules have no releases before.
          hasOutboxRow: false,
          isClaimed: isBegun(row['id'] as string),
        })),

    superseded: (effectIds) => new Set(effectIds.filter((id) => (tables.effects.get(id) ?? []).some(({ state }) => state === 'superseded'))),

    withdrawUnclaimed(effectIds) {
      for (const id of withdrawal === 'read only' ? [] : effectIds)
        if (!tables.claims.has(id)) tables.claims.set(id, { effect_id: id, claimed_at: new Date(nowMs()), withdrawn: true, claimant: null });
      return new Set(effectIds.filter(isBegun));
    },

    pendingReceivers(limit) {
      const rounds = [...tables.effects.values()].flat().filter(({ state, kind }) => state === 'open' && kind === 'delivery');
      const retries = [...tables.timers.values()].filter(({ key }) => (key as string).endsWith(RETRY_SUFFIX));
      const ids = [...rounds.map((row) => row['turn_id']), ...retries.map((row) => (jsonOf(row['command']) as { deliveryId: string }).deliveryId)];
      const callbacks = ids.flatMap((id) => tables.deliveries.get(id as string) ?? []).map((row) => row['url'] as string);
      const waiting = retries.map((row) => (jsonOf(row['command']) as { roundId?: string }).roundId);
      const isPending = ({ id, state, kind }: Row) => kind === 'event-delivery' && (state === 'open' || waiting.includes(id as string));
      const events = [...tables.effects.values()].flat().filter(isPending);
      return [...new Set([...callbacks, ...events.map((row) => (jsonOf(row['inputs']) as { url: string }).url)])].slice(0, limit);
    },
  };
}

export function runsOf(tables: ModelTables, nowMs: () => number): Executed<RunStore> {
  const stepsOf = (runId: string) => [...(tables.steps.get(runId) ?? [])].sort((left, right) => (left['seq'] as number) - (right['seq'] as number));
  const messageOf = (row: Row) => jsonOf(row['message']) as StepMessage;
  return {
    load: (runIds) => pick(tables.runs, runIds).map(storedRunOf),

    settled: (runIds) =>
      new Set(
        pick(tables.runs, runIds)
          .filter(({ state }) => state === 'succeeded' || state === 'failed')
          .map(({ id }) => id as string),
      ),

    unstarted: (partitions, { minAgeMs, limit }) =>
      [...tables.runs.values()]
        .filter(({ state, p }) => state === 'accepted' && partitions.includes(p as number))
        .filter((row) => msOf(row['created_at']) <= nowMs() - minAgeMs && !tables.seen.has(`${row['session_id']} ${row['id']}`))
        .sort((left, right) => msOf(left['created_at']) - msOf(right['created_at']))
        .slice(0, limit)
        .map((row) => {
          const { id, sessionId, traceparent, createdAtMs } = storedRunOf(row);
          return { id, partition: row['p'] as number, sessionId, traceparent, createdAtMs };
        }),

    transcript: (runId, below) =>
      stepsOf(runId)
        .filter(({ seq }) => (seq as number) < below)
        .map(messageOf),

    assistantMessages: (runId) =>
      stepsOf(runId)
        .reverse()
        .filter(({ message }) => (message as string).startsWith('{"role":"assistant"'))
        .map(messageOf),

    staged(from) {
      const found = new Map<string, Map<number, StepMessage>>();
      for (const [runId, first] of from) {
        const steps = stepsOf(runId).filter(({ seq }) => (seq as number) >= first);
        if (steps.length > 0) found.set(runId, new Map(steps.map((row) => [row['seq'] as number, messageOf(row)])));
      }
      return found;
    },

    toolLists: (hashes) => new Map(pick(tables.toolLists, hashes).map((row) => [row['hash'] as string, jsonOf(row['tools'])])),
  };
}

export function turnsOf(tables: ModelTables): Executed<TurnStore> {
  const bySeq = (rows: readonly Row[]) => [...rows].sort((left, right) => (left['seq'] as number) - (right['seq'] as number));
  return {
    staged(turnIds) {
      const found = turnIds.map(
        (id) => [id, bySeq(tables.turnSteps.get(id) ?? []).map((row) => ({ seq: row['seq'] as number, body: jsonOf(row['body']) }))] as const,
      );
      return new Map(found.filter(([, rows]) => rows.length > 0));
    },

    toolLists(bundleHashes) {
      const found = new Map<string, Record<string, string>>();
      for (const { bundle_hash: bundle, server_id: server, list_hash: list } of tables.toolServers) {
        const hash = bundle as string;
        if (bundleHashes.includes(hash)) found.set(hash, { ...found.get(hash), [server as string]: list as string });
      }
      return found;
    },

    agentStates(sessionIds) {
      const found = sessionIds.flatMap((id) => {
        const rows = bySeq(tables.agentStates.get(id) ?? []);
        const newest = rows.filter(({ seq }) => (seq as number) >= 0).at(-1);
        const amendments = rows
          .filter(({ seq }) => (seq as number) < 0)
          .map(({ state }) => jsonOf(state))
          .reverse();
        if (newest === undefined) return [];
        return [[id, { offset: newest['off'] as number, state: jsonOf(newest['state']), ...(amendments.length > 0 && { amendments }) }] as const];
      });
      return new Map(found);
    },
  };
}

export function customersOf(tables: ModelTables): Executed<CustomerStore> {
  return {
    read(customerId, names) {
      const customer = tables.customers.get(customerId);
      const tags = (customer?.['tags'] as string[] | undefined) ?? [];
      const keys: readonly unknown[] = ['DEFAULT', customerId, ...tags.map((tag) => `tag:${tag}`)];
      const values = tables.variableValues.filter(({ key, name }) => keys.includes(key) && names.includes(name as string));
      return {
        name: (customer?.['name'] as string | undefined) ?? null,
        tags: [...tags],
        values: values.map(({ key, name, data, updated_at: at }) => ({ key: key as string, name: name as string, data: jsonOf(data), updatedAtMs: msOf(at) })),
      };
    },
  };
}

function storedRunOf(row: Row): StoredRun {
  const text = (column: string) => row[column] as string;
  return {
    ...{ id: text('id'), sessionId: text('session_id'), customerId: text('customer_id'), ephemeral: row['ephemeral'] as boolean },
    ...{ routineId: text('routine_id'), bundleHash: text('bundle_hash'), input: text('input'), metadata: (row['metadata'] ?? null) as string | null },
    ...{ callbackUrl: (row['callback_url'] ?? null) as string | null, traceId: text('trace_id'), traceparent: (row['traceparent'] ?? null) as string | null },
    ...{ timeoutMs: row['timeout_ms'] as number, expiresAtMs: msOf(row['expires_at']), createdAtMs: msOf(row['created_at']) },
  };
}

/** A new object each time, so that no reader can change what is stored. */
function jsonOf(text: unknown): unknown {
  return JSON.parse(text as string);
}

function msOf(at: unknown): number {
  return (at as Date).getTime();
}

function pick(rows: ReadonlyMap<string, Row>, keys: readonly string[]): Row[] {
  return [...new Set(keys)].flatMap((key) => {
    const row = rows.get(key);
    return row === undefined ? [] : [row];
  });
}
