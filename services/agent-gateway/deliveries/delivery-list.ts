import { z } from 'zod';
import type { DeliveryRecord, EventWebhookState, WebhookDeliveryRecord } from '#shared/contracts/agent/deliveries.ts';
import { runStatus } from '#shared/contracts/agent/run.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import { behind, microsOf, pageParameters, type TimePosition } from './time-cursor.ts';

interface DeliveryRow {
  id: string;
  run_id: string;
  session_id: string;
  url: string;
  state: DeliveryRecord['state'];
  attempts: number;
  created_at: Date;
  settled_at: Date | null;
  at_micros: number;
  key: string;
}

interface WebhookDeliveryRow {
  webhook: string;
  key: string;
  received_at: Date;
  at_micros: number;
  matched: string[];
  runs: { run_id: string; routine_id: string; status: string }[] | null;
}

/** As a snapshot has it; what else is in there belongs to the actors. */
const storedWebhook = z.object({
  context: z.object({
    url: z.string().nullable(),
    isOn: z.boolean(),
    cursor: z.number(),
    attempts: z.number(),
    waitingSinceMs: z.number().nullable(),
  }),
});

/** What was posted, and what was taken. */
export class DeliveryList {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** Callbacks, those of the newest runs first. @returns one row more than `limit`, when there are more */
  async callbacks(state: DeliveryRecord['state'] | null, after: TimePosition | null, limit: number): Promise<DeliveryRow[]> {
    const { rows } = await this.#database.query<DeliveryRow>(SELECT_CALLBACKS, [state, ...pageParameters(after, limit)]);
    return rows;
  }

  /** Of one run: at most one. */
  async ofRun(runId: string): Promise<DeliveryRow[]> {
    const { rows } = await this.#database.query<DeliveryRow>(SELECT_OF_RUN, [`${runId}-callback`]);
    return rows;
  }

  /** Of webhooks of the manifest, newest first. @returns one row more than `limit`, when there are more */
  async ofWebhooks(after: TimePosition | null, limit: number): Promise<WebhookDeliveryRow[]> {
    const { rows } = await this.#database.query<WebhookDeliveryRow>(SELECT_OF_WEBHOOKS, pageParameters(after, limit));
    return rows;
  }

  /** Null: no such session, or it has none. */
  async eventWebhook(sessionId: string): Promise<EventWebhookState | null> {
    const { rows } = await this.#database.query<{ state: unknown }>(SELECT_EVENT_WEBHOOK, [sessionId]);
    const stored = storedWebhook.safeParse(rows[0]?.state).data;
    if (stored === undefined) return null;
    const { url, isOn, cursor, attempts, waitingSinceMs } = stored.context;
    const waitingSince = waitingSinceMs === null ? null : new Date(waitingSinceMs).toISOString();
    return { is_on: isOn, url: url === null ? null : publicUrl(url), from_offset: cursor, attempts, waiting_since: waitingSince };
  }
}

export function deliveryOf({ id, run_id, session_id, url, state, attempts, created_at, settled_at }: DeliveryRow): DeliveryRecord {
  const times = { created_at: created_at.toISOString(), settled_at: settled_at?.toISOString() ?? null };
  return { id, run_id, session_id, url: publicUrl(url), state, attempts, ...times };
}

export function webhookDeliveryOf({ webhook, key, received_at, matched, runs }: WebhookDeliveryRow): WebhookDeliveryRecord {
  const parsed = (runs ?? []).map(({ run_id, routine_id, status }) => ({ run_id, routine_id, status: runStatus.parse(status) }));
  return { webhook, body_hash: key.slice(key.lastIndexOf(':') + 1), received_at: received_at.toISOString(), matched, runs: parsed };
}

/** Without what may be a secret. */
function publicUrl(text: string): string {
  if (!URL.canParse(text)) return '';
  const { origin, pathname } = new URL(text);
  return `${origin}${pathname}`;
}

const DELIVERY = 'd.id, d.run_id, d.session_id, d.url, d.state, d.attempts, d.created_at, d.settled_at';

const SELECT_CALLBACKS: NamedStatement = {
  name: 'agent-gateway-callbacks',
  // In the order of the index of runs, whose callbacks have ids made from theirs.
  text: `select ${DELIVERY}, ${microsOf('r.created_at')} as at_micros, r.id as key
    from runs r join deliveries d on d.id = r.id || '-callback'
    where r.callback_url is not null and ($1::text is null or d.state = $1) and ${behind('r.created_at', 'r.id', '$2', '$3')}
    order by r.created_at desc, r.id limit $4::int`,
};

const SELECT_OF_RUN: NamedStatement = {
  name: 'agent-gateway-callbacks-of-run',
  text: `select ${DELIVERY}, ${microsOf('d.created_at')} as at_micros, d.id as key from deliveries d where d.id = $1`,
};

const SELECT_OF_WEBHOOKS: NamedStatement = {
  name: 'agent-gateway-webhook-deliveries',
  text: `select w.*, (select json_agg(json_build_object('run_id', runs.id, 'routine_id', runs.routine_id, 'status', runs.state) order by runs.id)
        from runs where runs.routine_id = any (w.matched) and runs.idempotency_key = w.key) as runs
    from (select webhook, key, received_at, matched, ${microsOf('received_at')} as at_micros from webhook_deliveries
      where ${behind('received_at', 'key', '$1', '$2')} order by received_at desc, key limit $3::int) w
    order by w.received_at desc, w.key`,
};

const SELECT_EVENT_WEBHOOK: NamedStatement = {
  name: 'agent-gateway-event-webhook',
  text: `select snapshot -> 'eventWebhook' as state from sessions where id = $1 and deleted_at is null`,
};
