import type pg from 'pg';
import { expect } from 'vitest';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';

/** The messages that were sent to a session. */
export interface SentMessages {
  texts: string[];
  /** Whether one was accepted before the next was sent. */
  inOrder: boolean;
}

/** Counts of their outcome. */
export interface Turns {
  begun: number;
  cancelled: number;
  /** Messages that joined a turn that had begun. */
  joined: number;
}

/** Stored counts of a session. */
export interface Stored {
  head: number;
  ids: string[];
  offsets: number[];
}

/**
 * The events of a whole turn, in words. Later messages may join it, and may cancel it; its events are contiguous, and it ends once. The
 * messages here make no turn fail.
 */
const TURNS = /^(?:user_message acknowledged (?:(?:user_message|processing|typing) )*(?:assistant_message|cancelled) ready )+$/;

/** Some customers wait for each answer, some post while the agent answers, some post everything at once. */
const MANNERS = ['sequential', 'overlapping', 'parallel'] as const;

export interface Talk {
  /** Number of the conversation: decides its manner, and stands in its texts. */
  number: number;
  messages: number;
  /** The text of a message; `isSlow`: the model answers slowly, so that the next message meets an open turn. */
  textOf(words: string, isSlow: boolean): string;
  /** Resolves once it is accepted. */
  say(text: string): Promise<void>;
  /** Waits for the agent's next message from an offset on. @returns the offset behind it */
  answeredFrom(offset: number): Promise<number>;
}

/** Holds a conversation. */
export async function converse({ number, messages, textOf, say, answeredFrom }: Talk): Promise<SentMessages> {
  const manner = MANNERS[number % MANNERS.length];
  const texts = Array.from({ length: messages }, (_, index) => textOf(`customer-${number}-says-${index}`, manner === 'overlapping' && index < messages - 1));
  if (manner === 'parallel') {
    await Promise.all(texts.map(say));
    return { texts, inOrder: false };
  }
  let nextOffset = 0;
  for (const text of texts) {
    await say(text);
    if (manner === 'sequential') nextOffset = await answeredFrom(nextOffset);
  }
  return { texts, inOrder: true };
}

/**
 * Compares a log as clients read it with what was sent and with the rows: each message is in it once, at dense offsets, and every turn
 * ended in one `ready`.
 *
 * @param lastAnswerTo the agent's last answer, by the last message
 */
export function checkLog(
  log: readonly ConversationEvent[],
  { texts, inOrder }: SentMessages,
  stored: Stored | undefined,
  lastAnswerTo: (text: string) => string,
): Turns {
  expect(log.map((event) => event.offset)).toEqual(log.map((_, index) => index));
  expect(stored).toEqual({ head: log.length, ids: log.map((event) => event.id), offsets: log.map((_, index) => index) });
  // Each once, in the order of acceptance.
  const received = log.flatMap((event) => (event.kind === 'user_message' ? [event.text] : []));
  expect(inOrder ? received : received.toSorted()).toEqual(inOrder ? texts : texts.toSorted());
  // So each `acknowledged` has one `ready`, and no message is behind the last.
  expect(`${log.map(wordOf).join(' ')} `).toMatch(TURNS);
  const tracesOf = (word: string) => log.filter((event) => wordOf(event) === word).map((event) => event.trace_id);
  const begun = tracesOf('acknowledged');
  expect(tracesOf('ready')).toEqual(begun);
  expect(new Set(begun).size).toBe(begun.length);
  // The last turn is not cancelled.
  expect(log.at(-2)).toMatchObject({ kind: 'assistant_message', text: lastAnswerTo(received.at(-1) ?? '') });
  return { begun: begun.length, cancelled: tracesOf('cancelled').length, joined: texts.length - begun.length };
}

function wordOf(event: ConversationEvent): string {
  return event.kind === 'status' ? event.status : event.kind;
}

/** By session. */
export async function storedSessions(database: pg.Pool, ids: readonly string[]): Promise<Map<string, Stored>> {
  const { rows } = await database.query<Stored & { id: string }>(
    `select s.id, s.head::int as head, array_agg(e.id order by e.off) as ids, array_agg(e.off::int order by e.off) as offsets
     from sessions s left join events e on e.session_id = s.id where s.id = any($1) group by s.id, s.head`,
    [ids],
  );
  return new Map(rows.map(({ id, ...rest }) => [id, rest]));
}

/** What is still in flight, or waited for. `others`: open effects that are no deliveries, of those in `effects`. */
export async function unfinished(database: pg.Pool, sessions: ReadonlyMap<string, SentMessages>): Promise<Record<string, number>> {
  const messages = [...sessions.values()].reduce((sum, { texts }) => sum + texts.length, 0);
  const { rows } = await database.query<Record<string, number>>(
    `select (select count(*)::int from effects where state = 'open') as effects,
       (select count(*)::int from effects where state = 'open' and kind not in ('delivery', 'event-delivery')) as others,
       (select count(*)::int from timers) as timers, (select count(*)::int from runs where completed_at is null) as runs,
       (select count(*)::int from deliveries where state = 'open') as deliveries,
       $2 - (select count(*)::int from events where session_id = any($1) and kind = 'user_message') as messages`,
    [[...sessions.keys()], messages],
  );
  return rows[0] ?? {};
}

/** @param sessions whose accepted messages have to be in their logs @throws with what is still in flight, or waited for */
export async function isQuiet(database: pg.Pool, sessions: ReadonlyMap<string, SentMessages> = new Map()): Promise<true> {
  const counts = await unfinished(database, sessions);
  if (Object.values(counts).some((count) => count > 0)) throw new Error(`there is still something to do: ${JSON.stringify(counts)}`);
  return true;
}
