import { z } from 'zod';
import { type AgentState, agentState, noAgentState, readAgentState } from '#actors/engine/agent-state.ts';
import { readTurnRows, type TurnRow } from '#actors/engine/turn-row.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { Post } from '../conversation/conversation.ts';
import { type RecordedGroup, recordedGroups } from './recorded-groups.ts';

/** A turn's calls have the numbers from 1; later ones of the longest turns are asked of the model again. */
const MAX_NAMED_CALLS = 100;
const TURNS_PER_QUERY = 50;

/** A model call as it was opened. */
interface RecordedCall {
  kind: string;
  inputs: Readonly<Record<string, unknown>>;
}

export interface RecordedTurn {
  /** Null: nothing but its events is stored. */
  turnId: string | null;
  /** Of the first event of the messages before it. */
  fromOffset: number;
  /** The messages that it answered, those of cancelled turns before it included. */
  posts: Post[];
  /** When the last of them was posted, epoch ms. */
  atMs: number;
  /** From its first to its last. */
  events: ConversationEvent[];
  rows: TurnRow[];
  /** As stored, in order. */
  bodies: readonly unknown[];
  /** With which it began; null: a turn of one model call. */
  state: AgentState | null;
  /** The set of evaluations with which it went on; null: none. */
  evaluations: string | null;
  /** Its model calls; empty: they are no longer stored. */
  calls: RecordedCall[];
  /** Of its configuration; null: it is no longer known. */
  bundleHash: string | null;
}

export interface RecordedSession {
  customerId: string;
  events: ConversationEvent[];
  turns: RecordedTurn[];
  /** What the agent remembers, newest last. */
  agentStates: { offset: number; state: AgentState }[];
}

/** Reads all that is stored of a session's turns; writes nothing. @throws `session.not_found` */
export async function readSession(database: Queryable, sessionId: string): Promise<RecordedSession> {
  const { rows: sessions } = await database.query<{ record: unknown }>(SESSION, [sessionId]);
  const { data: record } = z.looseObject({ customer_id: z.string() }).safeParse(sessions[0]?.record);
  if (record === undefined)
    throw new SwitchyardError(
      'session.not_found',
      `there is no session ${JSON.stringify(sessionId)} in this database, or it was deleted: the console lists those that there are, at /console of the agent server`,
    );
  const events = (await database.query<{ body: ConversationEvent }>(EVENTS, [sessionId])).rows.map(({ body }) => body);
  const steps = (await database.query<StepRow>(STEPS, [sessionId])).rows.map((row) => ({ ...row, off: Number(row.off) }));
  const states = (await database.query<{ off: number; state: unknown }>(STATES, [sessionId])).rows;
  const groups = recordedGroups(events).map((group) => ({ group, turnId: turnIdOf(group, steps) }));
  const calls = await readCalls(
    database,
    groups.flatMap(({ turnId }) => turnId ?? []),
  );
  return {
    customerId: record.customer_id,
    events,
    turns: groups.map(({ group, turnId }) => turnOf(group, turnId, steps, calls)),
    agentStates: states.map(({ off, state }) => ({ offset: Number(off), state: readAgentState(state) })),
  };
}

interface StepRow {
  turn_id: string;
  off: number;
  body: unknown;
}

const SESSION = 'select record from sessions where id = $1 and deleted_at is null';
const EVENTS = 'select body from events where session_id = $1 and deleted_at is null order by off';
const STEPS = 'select turn_id, off, body from turn_steps where session_id = $1 order by turn_id, seq';
const STATES = 'select off, state from agent_states where session_id = $1 and seq >= 0 order by seq';
const CALLS = 'select turn_id, kind, inputs from effects where id = any($1::text[])';

/** Turns do not overlap, so a row belongs to the turn in whose events it was stored. */
function turnIdOf({ events, beginOffset, endOffset }: RecordedGroup, steps: readonly StepRow[]): string | null {
  const row = steps.find(({ off }) => off >= beginOffset && off < endOffset);
  if (row !== undefined) return row.turn_id;
  const reply = events.findLast(({ kind, id }) => kind === 'assistant_message' && /^evt_.+-\d+$/.test(id));
  return reply === undefined ? null : reply.id.replace(/^evt_/, 'trn_').replace(/-\d+$/, '');
}

/** By turn. By ids, since effects have no index by session. */
async function readCalls(database: Queryable, turnIds: readonly string[]): Promise<Map<string, RecordedCall[]>> {
  const found = new Map<string, RecordedCall[]>();
  for (let from = 0; from < turnIds.length; from += TURNS_PER_QUERY) {
    const ids = turnIds.slice(from, from + TURNS_PER_QUERY).flatMap((id) => Array.from({ length: MAX_NAMED_CALLS }, (_, index) => `${id}-${index + 1}`));
    const { rows } = await database.query<{ turn_id: string; kind: string; inputs: Record<string, unknown> }>(CALLS, [ids]);
    for (const { turn_id: turnId, kind, inputs } of rows) found.set(turnId, [...(found.get(turnId) ?? []), { kind, inputs }]);
  }
  return found;
}

function turnOf(group: RecordedGroup, turnId: string | null, steps: readonly StepRow[], calls: ReadonlyMap<string, RecordedCall[]>): RecordedTurn {
  const { fromOffset, posts, atMs, events } = group;
  const bodies = turnId === null ? [] : steps.filter((row) => row.turn_id === turnId).map(({ body }) => body);
  const rows = readTurnRows(bodies);
  const began = rows.findLast((row) => row.kind === 'began');
  const ofTurn = turnId === null ? [] : (calls.get(turnId) ?? []);
  const hashes = ofTurn.map(({ inputs }) => inputs['bundleHash']).filter((hash) => typeof hash === 'string');
  return {
    ...{ turnId, fromOffset, posts, atMs, events, bodies, rows, calls: ofTurn },
    state: began?.kind === 'began' ? agentState.parse(began.state) : null,
    evaluations: began?.kind === 'began' ? (began.evaluations ?? null) : null,
    bundleHash: hashes[0] ?? null,
  };
}

/** What the agent remembered before an offset. */
export function stateBefore({ agentStates }: RecordedSession, offset: number): AgentState {
  return agentStates.findLast((row) => row.offset < offset)?.state ?? noAgentState;
}
