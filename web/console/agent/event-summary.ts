import type { AgentEvent } from '#client/api.ts';

const MAX_CHARACTERS = 200;

/** An event in a line. Kinds that this page does not know: nothing. */
export function summaryOf(event: AgentEvent): string {
  if ('text' in event && typeof event.text === 'string') return event.text.slice(0, MAX_CHARACTERS);
  if ('status' in event && typeof event.status === 'string') return [event.status, 'stage' in event ? event.stage : null].filter(Boolean).join(' · ');
  if ('tool_calls' in event && Array.isArray(event.tool_calls)) return event.tool_calls.map(({ tool_id }) => tool_id).join(', ');
  return '';
}

/** What moderation has found in a message, `flagged: harassment`; empty: it was not checked. */
export function moderationOf({ metadata }: AgentEvent): string {
  const { status, tags } = Object(Object(metadata)['moderation']);
  return [status, Array.isArray(tags) && tags.join(', ')].filter(Boolean).join(': ').slice(0, MAX_CHARACTERS);
}
