import { expect, it } from 'vitest';
import { createAgentClient } from '#client/agent-client.ts';
import { tailEvents } from './tail-events.ts';

const EVENT = {
  kind: 'assistant_message',
  id: 'e',
  source: 'ai_agent',
  offset: 0,
  created_at: '2026-01-01T00:00:00.000Z',
  trace_id: 't',
  metadata: {},
  text: 'Hi',
};

/** Follows a session of which requests are answered in order, then not at all. */
async function tail(answers: (() => Response)[]) {
  const [lines, notes]: [string[], string[]] = [[], []];
  const fetch: typeof globalThis.fetch = async () => {
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError('fetch failed');
    return answer();
  };
  const client = createAgentClient({ baseUrl: 'http://agent.test', apiKey: 'k', fetch, timings: { retryMs: 1, maxRetryMs: 1 } });
  const options = { sessionId: 'ses_1', after: -1, once: false, json: false };
  const ended = tailEvents(options, { client, print: (line) => void lines.push(line), note: (text) => void notes.push(text) });
  return { ended, lines, notes };
}

it('reports a server that does not answer at once, in place of waiting for it', async () => {
  const { ended } = await tail([]);

  await expect(ended).rejects.toMatchObject({ code: 'client.no_answer' });
});

it('says that a connection was lost, goes on, and ends with a session that is gone', async () => {
  const frame = `id: 0\nevent: assistant_message\ndata: ${JSON.stringify(EVENT)}\n\n`;
  const gone = { error: 'there is no such session', code: 'not_found' };
  const { ended, lines, notes } = await tail([
    () => Response.json({ id: 'ses_1' }),
    () => new Response(frame, { headers: { 'content-type': 'text/event-stream' } }),
    () => {
      throw new TypeError('fetch failed');
    },
    () => Response.json(gone, { status: 404 }),
  ]);

  await expect(ended).rejects.toMatchObject({ code: 'not_found' });
  expect(lines).toEqual([expect.stringContaining('Hi')]);
  expect(notes).toEqual([expect.stringMatching(/^\(connection lost: .*no answer from http:\/\/agent\.test; trying again\)\n$/)]);
});
