import { describe, expect, it } from 'vitest';
import { createAgentClient } from './agent-client.ts';
import { AgentError } from './agent-error.ts';
import { hanging, json, lost, message, scripted } from './test-support/scripted-fetch.ts';

const failureOf = async (work: Promise<unknown>): Promise<AgentError> => {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof AgentError)) throw new Error('expected an AgentError', { cause: error });
  return error;
};

describe('a request', () => {
  it('fills its path, writes its query, and sends the key as a header alone', async () => {
    const { client, sent } = scripted(json({ items: [] }));

    await client.request('GET', '/runs/{run_id}/steps', { path: { run_id: 'a/b?c' }, query: { limit: 5 } });

    expect(sent[0]).toMatchObject({ method: 'GET', path: '/runs/a%2Fb%3Fc/steps?limit=5' });
    expect(sent[0]?.headers.get('authorization')).toBe('Bearer a-key');
  });

  it.each(['', '.', '..'])('refuses the path parameter %j, which would name another path', async (runId) => {
    const { client, sent } = scripted(json({}));

    await expect(client.request('GET', '/runs/{run_id}', { path: { run_id: runId } })).rejects.toThrow('/runs/{run_id} needs a run_id');
    expect(sent).toEqual([]);
  });

  it('sends the cookie of the page, and no header, without a key', async () => {
    const inits: RequestInit[] = [];
    const fetch: typeof globalThis.fetch = async (_input, init = {}) => {
      inits.push(init);
      return Response.json([]);
    };

    await createAgentClient({ baseUrl: 'http://agent.test', fetch }).events.list('ses_1');
    await createAgentClient({ baseUrl: 'http://agent.test', apiKey: 'k', fetch }).events.list('ses_1');

    expect(inits.map(({ credentials }) => credentials)).toEqual(['same-origin', 'omit']);
    expect(new Headers(inits[0]?.headers).has('authorization')).toBe(false);
  });

  it('fails with the code, the field and the id of the answer', async () => {
    const refusal = json({ error: 'title must be a text', code: 'validation_failed', path: '/title' }, 400, { 'x-request-id': 'req_1', 'retry-after': '2' });
    const { client } = scripted(refusal);

    const error = await failureOf(client.sessions.get('ses_1'));

    expect(error).toMatchObject({
      message: 'title must be a text',
      code: 'validation_failed',
      status: 400,
      path: '/title',
      requestId: 'req_1',
      retryAfterMs: 2_000,
    });
    expect(error.isTransient).toBe(false);
  });

  it('fails with a short quotation of an answer that is no JSON', async () => {
    const { client } = scripted(() => new Response(`<html>${'x'.repeat(5_000)}`, { status: 502 }));

    const error = await failureOf(client.sessions.get('ses_1'));

    expect(error).toMatchObject({ code: 'http_502', status: 502, isTransient: true });
    expect(error.message.length).toBeLessThan(300);
  });

  it('fails for a redirect, naming where it leads, instead of following it', async () => {
    const { client } = scripted(() => new Response(null, { status: 301, headers: { location: 'https://agent.test/' } }));

    const error = await failureOf(client.messages.send('ses_1', 'Hello'));

    expect(error).toMatchObject({ code: 'client.redirected', isTransient: false });
    expect(error.message).toContain('https://agent.test/');
  });

  it('ends when no answer comes in time, and with the reason of its signal', async () => {
    const { fetch } = scripted(hanging);
    const client = createAgentClient({ baseUrl: 'http://agent.test', fetch, timings: { requestMs: 20 } });

    expect(await failureOf(client.sessions.get('ses_1'))).toMatchObject({ code: 'client.timeout', status: null });
    const reason = new Error('the user left');
    await expect(client.sessions.get('ses_1', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  });

  it('is made once without an idempotency key, whatever the failure', async () => {
    const { client, sent } = scripted(lost);

    expect(await failureOf(client.request('POST', '/sessions', { body: {} }))).toMatchObject({ code: 'client.no_answer', status: null });
    expect(sent).toHaveLength(1);
  });
});

describe('a message', () => {
  it('is repeated under the same key while the failure is transient', async () => {
    const first = message(0, 'Hello');
    const { client, sent } = scripted(lost, json({ error: 'booting', code: 'not_ready' }, 503), json(first, 200));

    const { event, isRepeat, idempotencyKey } = await client.messages.send('ses_1', 'Hello');

    expect(event).toEqual(first);
    expect(isRepeat).toBe(true);
    expect(sent.map(({ headers }) => headers.get('idempotency-key'))).toEqual([idempotencyKey, idempotencyKey, idempotencyKey]);
    expect(idempotencyKey).toMatch(/^[0-9a-f]{32}$/);
    expect(sent[2]?.body).toEqual({ kind: 'user_message', text: 'Hello' });
  });

  it('has a key of its own unless one is given', async () => {
    const { client } = scripted(json(message(0), 201));

    const keys = [await client.messages.send('s', 'a'), await client.messages.send('s', 'a'), await client.messages.send('s', 'a', { idempotencyKey: 'mine' })];

    expect(new Set(keys.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(3);
    expect(keys[2]?.idempotencyKey).toBe('mine');
    expect(keys[2]?.isRepeat).toBe(false);
  });

  it('is moderated as its option says, and without one as the server does by default', async () => {
    const { client, sent } = scripted(json(message(0), 201));

    await client.messages.send('ses_1', 'Hello', { moderation: 'paranoid' });
    await client.messages.send('ses_1', 'Hello');

    expect(sent.map(({ path }) => path)).toEqual(['/sessions/ses_1/events?moderation=paranoid', '/sessions/ses_1/events']);
    expect(sent[0]?.body).toEqual({ kind: 'user_message', text: 'Hello' });
  });

  it('has no event yet when the server answers 202', async () => {
    const { client } = scripted(json({ command_id: 'c' }, 202));

    expect(await client.messages.send('ses_1', 'Hello')).toMatchObject({ event: null, isRepeat: false });
  });

  it('fails at once when repeating does not help, and at last when nothing else does', async () => {
    const refused = scripted(json({ error: 'no such session', code: 'not_found' }, 404));
    expect(await failureOf(refused.client.messages.send('ses_1', 'Hello'))).toMatchObject({ status: 404 });
    expect(refused.sent).toHaveLength(1);

    const away = scripted(lost);
    expect(await failureOf(away.client.messages.send('ses_1', 'Hello'))).toMatchObject({ code: 'client.no_answer' });
    expect(away.sent).toHaveLength(8);
  });

  it('is not repeated after its signal', async () => {
    const leaving = new AbortController();
    const { client, sent } = scripted(() => {
      leaving.abort(new Error('left'));
      return lost();
    });

    await expect(client.messages.send('ses_1', 'Hello', { signal: leaving.signal })).rejects.toThrow('left');
    expect(sent).toHaveLength(1);
  });
});
