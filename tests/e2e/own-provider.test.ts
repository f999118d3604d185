import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../upstreams/openai-upstream.ts';

const UPSTREAM_KEY = 'sk-upstream-secret-0123456789';
let upstream: OpenAiUpstream;
let standalone: Standalone;

beforeAll(async () => {
  upstream = await openOpenAiUpstream();
  standalone = await startStandalone({
    env: {
      OPENAI_API_KEY: UPSTREAM_KEY,
      OPENAI_BASE_URL: upstream.baseUrl,
      OPENAI_MODELS: 'small,large',
      OPENAI_PROVIDER_NAME: 'Acme AI',
      STREAMING: 'true',
      LOG_LEVEL: 'trace',
    },
  });
});

afterAll(async () => {
  await standalone.stop();
  await upstream.close();
});

beforeEach(() => {
  upstream.answer();
});

afterEach(() => {
  expect(standalone.output()).not.toContain(UPSTREAM_KEY);
});

describe('with a provider of one’s own', () => {
  it('calls that provider, under its own name of the model and with its key, and reports which model answered', async () => {
    const response = await complete({ model: 'small', messages: [{ role: 'user', content: 'hi' }] });
    const body = (await response.json()) as { model: string; provider: string };
    const request = upstream.requests.at(-1);

    expect(body).toMatchObject({ model: 'acme-ai/small', provider: 'Acme AI' });
    expect(request?.path).toBe('/v1/chat/completions');
    expect(request?.headers.authorization).toBe(`Bearer ${UPSTREAM_KEY}`);
    expect(request?.body).toMatchObject({ model: 'small', stream: true });
  });

  it('answers for the sample agent through it', async () => {
    const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
    const { id } = await agent.createSession();
    await agent.postMessage(id, 'hello');
    const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
    const sent = upstream.requests.at(-1)?.body as { messages: { role: string }[] };

    expect(log.find((event) => event.kind === 'assistant_message')).toMatchObject({ metadata: { model: 'acme-ai/small' } });
    expect(sent.messages.map(({ role }) => role)).toEqual(['system', 'user', 'system']);
    expect(upstream.questions.map(({ body }) => body)).toContainEqual(
      expect.objectContaining({
        model: 'small',
        response_format: expect.objectContaining({ json_schema: expect.objectContaining({ name: 'match_actionable' }) }),
      }),
    );
  });

  it('closes the upstream when its client disconnects in the middle of a stream', async () => {
    upstream.answer({ text: Array(200).fill('word '), delayMs: 50 });
    const before = upstream.aborts;
    const leave = new AbortController();
    const response = await complete({ stream: true, messages: [{ role: 'user', content: 'hi' }] }, leave.signal);
    const reader = response.body?.getReader();
    await reader?.read();
    leave.abort();

    await eventually(() => upstream.aborts === before + 1);
  });

  it('DESIGN 5: a second message that cancels the turn stops the upstream', async () => {
    const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
    const { id } = await agent.createSession();
    upstream.answer({ text: Array(200).fill('word '), delayMs: 50 }, {});
    const [before, requests] = [upstream.aborts, upstream.requests.length];
    await agent.postMessage(id, 'tell me a long story');
    await eventually(() => upstream.requests.length === requests + 1);
    // A plain wait for the end of the coalescing window.
    await new Promise((resolve) => setTimeout(resolve, 200));
    await agent.postMessage(id, 'never mind');

    await eventually(() => upstream.aborts === before + 1);
    const log = await agent.logUntil(id, (event) => event.kind === 'assistant_message');
    expect(log.some((event) => event.kind === 'status' && event.status === 'cancelled')).toBe(true);
  });

  it('answers with the upstream’s own limit and its Retry-After', async () => {
    upstream.answer({ refuse: { status: 429, headers: { 'retry-after': '7' } } });
    const response = await complete({ messages: [{ role: 'user', content: 'hi' }] });

    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('7');
  });
});

function complete(body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${standalone.routerUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${standalone.keys.routerKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}
