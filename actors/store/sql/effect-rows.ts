import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { EffectRow } from '../../effects/effect-row.ts';
import { RETRY_SUFFIX } from '../../kinds/delivery/rounds.ts';
import type { EffectStore } from '../port/effect-store.ts';

export function effectRows(database: Queryable): EffectStore {
  return {
    async open(partitions) {
      const { rows } = await database.query<OpenEffectRow>(OPEN, [partitions]);
      return rows.map((row) => ({
        effect: effectOf(row),
        isUnpublished: row.unpublished || row.in_outbox,
        hasOutboxRow: row.in_outbox,
        isClaimed: row.claimed,
      }));
    },

    async superseded(effectIds) {
      const { rows } = await database.query<{ id: string }>(SUPERSEDED, [effectIds]);
      return new Set(rows.map((row) => row.id));
    },

    async withdrawUnclaimed(effectIds) {
      const { rows } = await database.query<{ effect_id: string; withdrawn: boolean }>(WITHDRAW_UNCLAIMED, [effectIds]);
      return new Set(rows.flatMap((row) => (row.withdrawn ? [] : [row.effect_id])));
    },

    async pendingReceivers(limit) {
      const { rows } = await database.query<{ url: string }>(PENDING_RECEIVERS, [limit]);
      return rows.map((row) => row.url);
    },
  };
}

interface OpenEffectRow {
  id: string;
  p: number;
  session_id: string;
  /** `actorId`: the column keeps its first name (ADR 37). */
  turn_id: string;
  kind: string;
  inputs: EffectRow['inputs'];
  created_at: Date;
  unpublished: boolean;
  in_outbox: boolean;
  claimed: boolean;
}

function effectOf(row: OpenEffectRow): EffectRow {
  const { id, p: partition, session_id: sessionId, turn_id: actorId, kind, inputs } = row;
  return { partition, id, sessionId, actorId, createdAtMs: row.created_at.getTime(), kind, inputs };
}

const OPEN = `select id, p, session_id, turn_id, kind, inputs, created_at, unpublished,
  exists (select 1 from outbox where outbox.p = effects.p and outbox.id = effects.id) as in_outbox,
  exists (select 1 from claims where claims.effect_id = effects.id and not claims.withdrawn) as claimed
  from effects where state = 'open' and p = any($1::int[]) order by created_at`;

const SUPERSEDED: NamedStatement = { name: 'superseded-effects', text: `select id from effects where id = any($1::text[]) and state = 'superseded'` };

/**
 * One row decides between this and a worker's claim. The update changes nothing: it waits for a claim in progress, and returns the row as it is then. In a fixed
 * order, against deadlocks between hosts.
 */
const WITHDRAW_UNCLAIMED: NamedStatement = {
  name: 'withdraw-unclaimed-effects',
  text: `insert into claims (effect_id, withdrawn) select distinct id, true from unnest($1::text[]) as id order by id
    on conflict (effect_id) do update set withdrawn = claims.withdrawn returning effect_id, withdrawn`,
};

/** Through open effects and timers: the table of deliveries holds weeks of them. */
const PENDING_RECEIVERS: NamedStatement = {
  name: 'callbacks-left',
  text: `select url from deliveries where id in (
      select turn_id from effects where state = 'open' and kind = 'delivery'
      union select command ->> 'deliveryId' from timers where key like '%${RETRY_SUFFIX}')
    union select inputs ->> 'url' from effects where state = 'open' and kind = 'event-delivery'
    union select inputs ->> 'url' from effects where id in (
      select command ->> 'roundId' from timers where key like '%${RETRY_SUFFIX}' and command ->> 'type' = 'event-webhook.due')
    limit $1`,
};
