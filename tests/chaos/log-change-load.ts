import { expect } from 'vitest';
import { z } from 'zod';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { RetryingClient } from '../helpers/retrying-client.ts';
import type { Stored } from '../helpers/session-logs.ts';
import type { Environment } from './environment.ts';

type Received = ReturnType<Environment['receiver']['address']>['received'];

/** A session whose events were patched and deleted, and what its log has to hold afterwards. */
export interface ChangedLog {
  sessionId: string;
  /** The posts of its event webhook. */
  received: Received;
  /** Texts of messages that stay, with their metadata. */
  kept: { text: string; metadata: Record<string, unknown> }[];
  /** Texts of deleted messages. */
  deleted: string[];
}

const ROUNDS = 3;
const created = z.looseObject({ id: z.string() });
const posted = z.looseObject({ id: z.string(), offset: z.number() });

let sessions = 0;

/** Posts, patches and deletes; from the second on a deletion cancels a turn, or deletes it with its end. @throws when a request is refused */
export async function changeLogs({ client, receiver }: Pick<Environment, 'client' | 'receiver'>, begin: () => void): Promise<ChangedLog> {
  sessions += 1;
  const name = `log-${process.pid}-${sessions}`;
  const events = receiver.address(204);
  const sessionId = created.parse(accepted(await client.post('/sessions', { event_webhook_url: events.url }))).id;
  const [kept, deleted]: [ChangedLog['kept'], string[]] = [[], []];
  const say = async (text: string, triggersTurn: boolean) => {
    begin();
    const fields = { kind: 'user_message', text, idempotency_key: text, trigger_processing: triggersTurn };
    return posted.parse(accepted(await insistOnOffset(client, `/sessions/${sessionId}/events`, fields)));
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const stays = await say(`${name} stays ${round}`, false);
    const goes = await say(`${name} goes ${round}`, round > 0);
    begin();
    const path = `/sessions/${sessionId}/events/${stays.id}`;
    accepted(await client.write('PATCH', path, `patch-${round}`, { metadata: { set: { round, gone: 1 } } }));
    accepted(await client.write('PATCH', path, `patch-again-${round}`, { metadata: { unset: ['gone'] } }));
    begin();
    accepted(await client.write('DELETE', `/sessions/${sessionId}/events?min_offset=${goes.offset}&force=true`, `delete-${round}`));
    kept.push({ text: `${name} stays ${round}`, metadata: { round } });
    deleted.push(`${name} goes ${round}`);
  }
  return { sessionId, received: events.received, kept, deleted };
}

/** Exactly what was not deleted is in the log, under offsets that were given once; each event of it was posted. */
export async function checkChangedLog({ client, model }: Environment, { sessionId, received, kept, deleted }: ChangedLog, stored: Stored | undefined) {
  const { status, body } = await client.get(`/sessions/${sessionId}/events?min_offset=0&limit=1000&wait_for_data=0`);
  expect(status).toBe(200);
  const log = body as ConversationEvent[];
  const messages = log.flatMap((event) => (event.kind === 'user_message' ? [{ text: event.text, metadata: event.metadata }] : []));
  expect(messages, `the messages of ${sessionId}`).toEqual(kept);
  expect(
    log.filter(({ kind }) => kind === 'assistant_message'),
    `answers to deleted messages of ${sessionId}`,
  ).toEqual([]);
  expect(log.map(({ offset }) => offset)).toEqual([...new Set(log.map(({ offset }) => offset))].toSorted((left, right) => left - right));
  expect(stored?.offsets, `the rows of ${sessionId}`).toEqual(Array.from({ length: stored?.head ?? 0 }, (_, offset) => offset));
  const posts = received.map(({ body: text }) => JSON.parse(String(text)) as ConversationEvent);
  const offsets = [...new Set(posts.map(({ offset }) => offset))];
  expect(offsets, `the posts of ${sessionId} in order`).toEqual(offsets.toSorted((left, right) => left - right));
  expect(
    log.filter(({ offset }) => !offsets.includes(offset)),
    `events of ${sessionId} that were not posted`,
  ).toEqual([]);
  // Later turns of the session saw only what was left: a deleted message is in the prompt of its own turn alone.
  for (const text of deleted) expect(model.promptsWith(text), `prompts with ${text}`).toBeLessThanOrEqual(1);
}

/** Until the message has its offset: 202 says that it is durable. */
async function insistOnOffset(client: RetryingClient, path: string, fields: object) {
  for (;;) {
    const answer = await client.post(path, fields);
    if (answer.status !== 202) return answer;
  }
}

function accepted({ status, body }: { status: number; body: unknown }): unknown {
  if (status < 200 || status > 299) throw new Error(`a request was answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
