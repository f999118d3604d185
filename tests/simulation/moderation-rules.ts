import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { ModelTables } from './model-rows.ts';
import type { Simulation } from './simulation.ts';

/** What the simulated moderation has found about a text. */
export type Found = 'passed' | 'flagged' | 'failed';

/** What no model may see. */
export const FLAGGED_TAG = 'threat';

interface Mark {
  status?: 'pending' | 'passed' | 'flagged' | 'unavailable';
  tags?: string[];
}

/** A text that a prompt of a model has, and that moderation has not passed; null: there is none. */
export function withheldTextIn(tables: ModelTables, sessionId: string, prompt: string): string | null {
  // Each message of a caller has a text of its own.
  const texts = new Set(prompt.match(/message post_\d+/g));
  for (const { body } of tables.events.get(sessionId)?.values() ?? []) {
    const event = JSON.parse(body as string) as ConversationEvent;
    const status = markOf(event)?.status ?? 'passed';
    if (event.kind === 'user_message' && status !== 'passed' && texts.has(event.text)) return `${event.text} (${status})`;
  }
  return null;
}

/** Each check has ended as moderation has said, and no turn has replied to a message that was not checked. */
export function checkModeration({ environment, watch, counts, model }: Simulation, logs: ReadonlyMap<string, readonly ConversationEvent[]>): void {
  for (const [session, log] of logs) {
    const replied = new Set(log.flatMap(({ kind, trace_id: trace }) => (kind === 'assistant_message' ? [trace] : [])));
    for (const event of log) {
      const mark = markOf(event);
      // A deleted event stays as it is.
      if (mark === null || model.tables.events.get(session)?.get(event.offset)?.['deleted_at'] !== null) continue;
      const about = `${event.id} of ${session}`;
      const found = environment.moderated.get(`${event.id}-moderation`) ?? new Set<Found>();
      if (mark.status === 'pending') watch.breach('moderation', `the check of ${about} has not ended`);
      else if (mark.status !== 'unavailable' && !found.has(mark.status ?? 'passed'))
        watch.breach('moderation', `${about} is ${mark.status}, which no check has found`);
      if (mark.status === 'flagged' && mark.tags?.join() !== FLAGGED_TAG) watch.breach('moderation', `${about} has the tags ${mark.tags?.join()}`);
      if (mark.status === 'unavailable' && replied.has(event.trace_id)) watch.breach('moderation', `${about} was not checked, and its turn has replied`);
      if (mark.status === 'passed') counts.messagesPassed += 1;
      else counts.messagesWithheld += 1;
    }
  }
}

function markOf({ metadata }: ConversationEvent): Mark | null {
  return (metadata['moderation'] as Mark | undefined) ?? null;
}
