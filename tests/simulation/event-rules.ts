import type { PostedEventWatch } from './environment.ts';
import type { ModelTables } from './model-rows.ts';
import type { Simulation } from './simulation.ts';
import { isSameEvent, type Watch } from './watch.ts';

/** A request that begins so long after a deletion has nothing of what was deleted. */
const FRESH_MS = 1_000;

/**
 * Checks each event at the moment in which its receiver gets it: with the bytes of the log, and only after every event before it was accepted or has become a
 * dead letter. Repeats are allowed.
 */
export class EventWatch implements PostedEventWatch {
  readonly #tables: ModelTables;
  readonly #watch: Watch;
  /** Accepted offsets, by session. */
  readonly accepted = new Map<string, Set<number>>();

  constructor(tables: ModelTables, watch: Watch) {
    this.#tables = tables;
    this.#watch = watch;
  }

  posted(sessionId: string, body: string, { isAccepted, begunAtMs }: { isAccepted: boolean; begunAtMs: number }): void {
    const { offset } = JSON.parse(body) as { offset: number };
    const log = this.#tables.events.get(sessionId);
    const isDeleted = this.#tables.sessions.get(sessionId)?.['deleted_at'] != null;
    if (!isDeleted && !isSameEvent(log?.get(offset)?.['body'], body))
      this.#watch.breach('event', `${offset} of ${sessionId} was posted with other bytes than the log has`);
    const staleMs = isDeleted ? null : this.#watch.logs.staleAt(sessionId, offset, begunAtMs);
    if (staleMs !== null && staleMs > FRESH_MS) this.#watch.breach('event', `${offset} of ${sessionId} was posted ${staleMs} ms after its deletion`);
    const accepted = this.accepted.get(sessionId) ?? new Set<number>();
    this.accepted.set(sessionId, accepted);
    for (const before of log?.keys() ?? []) {
      if (before < offset && !accepted.has(before) && !isDead(this.#tables, sessionId, before) && log?.get(before)?.['deleted_at'] === null)
        this.#watch.breach('event', `${offset} of ${sessionId} was posted before ${before}`);
    }
    if (isAccepted) accepted.add(offset);
  }
}

/** Each event of a session with an event webhook was accepted or is a dead letter, and its cursor is at the end of the log. */
export function checkEvents({ watch, model: { tables }, environment }: Simulation): void {
  for (const [id, { snapshot, deleted_at: deletedAt, head }] of tables.sessions) {
    const { eventWebhook } = JSON.parse(snapshot as string) as { eventWebhook: { value: string; context: { cursor: number } } | null };
    if (eventWebhook === null || deletedAt != null) continue;
    const { value, context } = eventWebhook;
    if (value !== 'idle' || context.cursor !== head) watch.breach('event', `the webhook of ${id} is ${value} at ${context.cursor} of ${head}`);
    for (const [offset, row] of tables.events.get(id) ?? []) {
      if (row['deleted_at'] === null && environment.events.accepted.get(id)?.has(offset) !== true && !isDead(tables, id, offset))
        watch.breach('event', `${offset} of ${id} was left out`);
    }
  }
  const letters = tables.deadLetters.filter(({ source }) => source === 'event').map(({ id }) => id);
  if (new Set(letters).size !== letters.length) watch.breach('once', `a dead letter stands twice: ${letters.join(', ')}`);
}

function isDead({ deadLetters }: ModelTables, sessionId: string, offset: number): boolean {
  return deadLetters.some(({ source, id }) => source === 'event' && id === `${sessionId}-event-${offset}`);
}
