import { expect } from 'vitest';
import { z } from 'zod';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import type { RetryingClient } from '../helpers/retrying-client.ts';

/** A session of an integration alone, and the replies to its injected results. */
export interface InjectedResults {
  sessionId: string;
  /** By idempotency key. Each was sent twice. */
  replies: ReadonlyMap<string, z.infer<typeof position>>;
}

const RESULTS = 4;
const position = z.object({ event_id: z.string(), offset: z.number(), creation_utc: z.string(), trace_id: z.string() });
const created = z.looseObject({ id: z.string() });
/** A turn per requested processing; each result cancels the turn before it. */
const TURNS = /^(?:tool |tool acknowledged (?:tool |processing |typing )*(?:assistant_message|cancelled) ready )+$/;

let sessions = 0;

/** Injects results, every second of which requests a turn, and repeats each. @throws when a repeat has another reply */
export async function injectResults(client: RetryingClient, begin: () => void): Promise<InjectedResults> {
  const { id: sessionId } = created.parse(accepted(await client.post('/sessions', {})));
  sessions += 1;
  const replies = new Map<string, z.infer<typeof position>>();
  for (let index = 0; index < RESULTS; index += 1) {
    begin();
    const key = `result-${process.pid}-${sessions}-${index}`;
    const fields = { tool_id: 'crm:note', arguments: { index }, result: { key }, idempotency_key: key, trigger_processing: index % 2 === 1 };
    const path = `/sessions/${sessionId}/tool_events`;
    const first = position.parse(accepted(await client.post(path, fields)));
    expect(position.parse(accepted(await client.post(path, { ...fields, result: 'another' }))), `the repeat of ${key}`).toEqual(first);
    replies.set(key, first);
  }
  return { sessionId, replies };
}

/** One tool event per key, where its reply says, at dense offsets, and every requested turn ended once. */
export async function checkInjected(client: RetryingClient, { sessionId, replies }: InjectedResults): Promise<void> {
  const { status, body } = await client.get(`/sessions/${sessionId}/events?min_offset=0&limit=1000&wait_for_data=0`);
  expect(status).toBe(200);
  const log = body as ConversationEvent[];
  expect(log.map(({ offset }) => offset)).toEqual(log.map((_, index) => index));
  const stored = log.flatMap(({ kind, metadata, id, offset, created_at, trace_id }) => {
    return kind === 'tool' ? [[metadata['idempotency_key'], { event_id: id, offset, creation_utc: created_at, trace_id }]] : [];
  });
  expect(stored, `the tool events of ${sessionId}`).toEqual([...replies]);
  expect(`${log.map((event) => (event.kind === 'status' ? event.status : event.kind)).join(' ')} `).toMatch(TURNS);
  expect(log.at(-1), `the last turn of ${sessionId}`).toMatchObject({ kind: 'status', status: 'ready' });
}

function accepted({ status, body }: { status: number; body: unknown }): unknown {
  if (status < 200 || status > 299) throw new Error(`a request was answered ${status}: ${JSON.stringify(body)}`);
  return body;
}
