import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type HttpDouble, openHttpDouble } from '../../services/effect-worker/test-support/http-double.ts';
import { type DeploymentUnderTest, shapes } from '../helpers/deployment-under-test.ts';
import { nthReady, wordsOf } from '../helpers/events-of-a-session.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../upstreams/openai-upstream.ts';

const REPLY = 'Two years, from the day of delivery.';
const WORD = 'hand grenade';
const ONE_OF_EACH = { 'router-gateway': 1, 'agent-gateway': 1, 'actor-host': 1, 'router-worker': 1, 'effect-worker': 1 };

const moderated = z.object({ input: z.array(z.string()) });

/** Of the endpoint for moderation: what it answers. */
let isDown = false;
let upstream: OpenAiUpstream;
let engine: HttpDouble;

beforeAll(async () => {
  upstream = await openOpenAiUpstream();
  engine = await openHttpDouble((request, response) => {
    const { input } = moderated.parse(JSON.parse(String(request.body)));
    const results = input.map((text) => ({ flagged: text.includes(WORD), categories: { violence: text.includes(WORD), harassment: false } }));
    response.writeHead(isDown ? 503 : 200, { 'content-type': 'application/json' }).end(JSON.stringify({ results }));
  });
});
afterAll(async () => {
  await engine?.close();
  await upstream?.close();
});

/** The agent's model at the upstream, and moderation by the endpoint. */
async function routerFile(): Promise<string> {
  const path = join(await freeFolder('router'), 'router.json');
  const config = {
    providers: [{ slug: 'upstream', kind: 'openai-compatible', base_url: upstream.baseUrl }],
    models: [{ id: 'upstream/small', aliases: ['switchyard/assistant'], endpoints: [{ provider: 'upstream', upstream_model: 'small' }] }],
    keys: [{ id: 'agent', key: '${ROUTER_API_KEY}' }],
    plugins: { moderation: { endpoint: { url: `http://127.0.0.1:${engine.port}/v1/moderations` } } },
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

describe.each(casesOfToday(shapes))('moderation of messages, $name', (shape) => {
  let deployment: DeploymentUnderTest;

  beforeAll(async () => {
    deployment = await shape.start({ ROUTER_CONFIG: await routerFile(), COALESCE_MS: '0' }, ONE_OF_EACH);
  }, 180_000);
  afterAll(() => deployment?.stop());

  async function say(sessionId: string, text: string, moderation: string): Promise<{ status: number; body: Record<string, unknown> }> {
    const response = await fetch(`${deployment.nextAgentUrl()}/sessions/${sessionId}/events?moderation=${moderation}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${deployment.keys.agentKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ kind: 'user_message', text }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }
  const marksOf = (log: readonly { kind: string; metadata: Record<string, unknown> }[]) =>
    log.flatMap(({ kind, metadata }) => (kind === 'user_message' ? [metadata['moderation']] : []));
  /** All that models of the agent have got since. */
  const promptsSince = (requests: number) => JSON.stringify([...upstream.requests.slice(requests), ...upstream.questions].map(({ body }) => body));

  it('DESIGN 5: rules 120 to 122, 126: passes what is fine; what is flagged stays out of prompts, now and later, with its tags in the log', async () => {
    isDown = false;
    upstream.answer({ text: [REPLY] });
    const { agent } = deployment;
    const { id } = await agent.createSession();
    const posted = await say(id, 'How long is the warranty?', 'auto');
    expect([posted.status, posted.body['metadata']]).toEqual([201, { moderation: { mode: 'auto', status: 'pending' } }]);
    await agent.logUntil(id, nthReady(1));
    expect(promptsSince(0)).toContain('How long is the warranty?');

    await say(id, `Or I throw a ${WORD}`, 'auto');
    await agent.logUntil(id, nthReady(2));
    await say(id, 'Sorry. A hand', 'paranoid');
    await agent.logUntil(id, nthReady(3));
    await say(id, ' grenade', 'paranoid');
    await agent.logUntil(id, nthReady(4));
    const log = await agent.poll(id);

    const flagged = { status: 'flagged', flagged: true, tags: ['violence'] };
    expect(marksOf(log)).toEqual([
      { mode: 'auto', status: 'passed', flagged: false, tags: [] },
      { mode: 'auto', ...flagged },
      { mode: 'paranoid', status: 'passed', flagged: false, tags: [] },
      { mode: 'paranoid', ...flagged },
    ]);
    expect(log.filter(({ kind }) => kind === 'assistant_message')).toHaveLength(4);
    expect(promptsSince(0)).not.toContain(WORD);
    expect(promptsSince(0)).toContain('It was flagged by moderation, because of [\\"violence\\"]');
  });

  it('rule 123: ends the turn as an error when moderation is not to be had, asks no model, and goes on with the next message', async () => {
    isDown = true;
    const { agent } = deployment;
    const { id } = await agent.createSession();
    const before = upstream.requests.length;
    await say(id, 'Is this read?', 'auto');
    const log = await agent.logUntil(id, nthReady(1));
    expect(wordsOf(log)).toBe('user_message acknowledged error ready');
    expect(log.find((event) => event.kind === 'status' && event.status === 'error')).toMatchObject({
      error_detail: 'moderation_unavailable: a message could not be checked by moderation',
    });
    expect(upstream.requests).toHaveLength(before);

    isDown = false;
    await say(id, 'And this?', 'auto');
    const all = await agent.logUntil(id, nthReady(2));
    expect(marksOf(await agent.poll(id))).toMatchObject([{ status: 'unavailable' }, { status: 'passed' }]);
    expect(all.at(-2)).toMatchObject({ kind: 'assistant_message', text: REPLY });
    expect(promptsSince(before)).not.toContain('Is this read?');
  });
});
