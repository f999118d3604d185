import { readMark } from '#actors/engine/moderation/moderation-mark.ts';
import type { ConversationEvent } from '#shared/contracts/agent/conversation-event.ts';
import type { MessageCheck, Post } from '../conversation/conversation.ts';

/** The events of a turn, with the messages that it answered. */
export interface RecordedGroup {
  /** Of the first of its messages. */
  fromOffset: number;
  posts: Post[];
  /** Epoch ms of the last message. */
  atMs: number;
  /** Of the turn alone. */
  events: ConversationEvent[];
  /** Of the turn's first and last event. */
  beginOffset: number;
  endOffset: number;
}

/** The turns of a log that have ended by themselves, in order. Messages of a cancelled turn, and those to which none has replied, belong to the next one. */
export function recordedGroups(log: readonly ConversationEvent[]): RecordedGroup[] {
  const groups: RecordedGroup[] = [];
  let events: ConversationEvent[] = [];
  for (const event of log) {
    events.push(event);
    if (!isStatus(event, 'ready')) continue;
    // Messages that came in one trace of a caller begin turns with its id. Turns do not overlap.
    const ofTrace = events.filter((one) => one.trace_id === event.trace_id);
    const beginning = ofTrace.findLastIndex((one) => isStatus(one, 'acknowledged'));
    const begin = ofTrace[beginning];
    // Of a run, which no message begins; or of a turn that another message has ended.
    if (begin === undefined || ofTrace.slice(beginning).some((one) => isStatus(one, 'cancelled'))) continue;
    groups.push(groupOf(events, begin.offset, event.offset));
    events = [];
  }
  return groups;
}

function isStatus(event: ConversationEvent, status: string): boolean {
  return event.kind === 'status' && event.source === 'ai_agent' && event.status === status;
}

function groupOf(events: ConversationEvent[], beginOffset: number, endOffset: number): RecordedGroup {
  const posted = events.flatMap((event) => {
    const post = postOf(event);
    return post === null ? [] : [{ event, post }];
  });
  const hasTrigger = posted.some(({ post }) => post.triggersTurn);
  const posts = posted.map(({ post }, index) => (hasTrigger || index < posted.length - 1 ? post : { ...post, triggersTurn: true }));
  const [first] = posted;
  const last = posted.at(-1);
  return {
    fromOffset: first?.event.offset ?? beginOffset,
    posts,
    atMs: Date.parse(last?.event.created_at ?? events[0]?.created_at ?? ''),
    events: events.filter(({ offset }) => offset >= beginOffset),
    beginOffset,
    endOffset,
  };
}

/** What moderation has found in a message; null: it was not checked. One that was still being checked when the log was read counts as one that could not be. */
function checkIn({ metadata }: ConversationEvent): MessageCheck | null {
  const mark = readMark(metadata);
  if (mark === null || mark.mode === null) return null;
  const { mode, status, tags } = mark;
  if (status === 'flagged') return { mode, verdict: { type: status, tags } };
  return { mode, verdict: { type: status === 'passed' ? status : 'unavailable' } };
}

/** Null for what the agent has written, and for what no prompt shows. */
function postOf(event: ConversationEvent): Post | null {
  const { source, metadata } = event;
  if (source === 'ai_agent') return null;
  if (event.kind === 'user_message' || event.kind === 'assistant_message') {
    const isCustomers = source === 'customer' || source === 'customer_ui';
    const check = isCustomers ? checkIn(event) : null;
    const { moderation: _, ...rest } = metadata;
    return { type: 'message', source, text: event.text, metadata: check === null ? metadata : rest, triggersTurn: isCustomers, ...(check && { check }) };
  }
  const [call] = event.kind === 'tool' ? event.tool_calls : [];
  if (call === undefined) return null;
  return { type: 'tool-result', toolId: call.tool_id, arguments: call.arguments, result: call.result.data, metadata, triggersTurn: false };
}
