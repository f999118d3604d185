import { mkdir, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type HttpDouble, openHttpDouble } from '../../services/effect-worker/test-support/http-double.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../upstreams/openai-upstream.ts';

const AGENT_API_KEY = 'sk-agent-of-the-shop';
const SEARCH_API_KEY = 'sk-of-the-search-service';
const v1 = (id: string) => ({ id, version: 1 });

let upstream: OpenAiUpstream;
let service: HttpDouble;
let onSearch: (response: ServerResponse) => void;
let standalone: Standalone;
let agent: AgentClient;

beforeAll(async () => {
  upstream = await openOpenAiUpstream();
  service = await openHttpDouble((_, response) => onSearch(response));
  const keys = { AGENT_API_KEY, SEARCH_API_KEY, ROUTER_API_KEY: 'sk-router-of-the-shop', PLATFORM_PUBLIC_KEY: 'pk', PLATFORM_SECRET_KEY: 'sk' };
  const provider = { OPENAI_API_KEY: 'sk-upstream-0123456789', OPENAI_BASE_URL: upstream.baseUrl, OPENAI_MODELS: 'small' };
  standalone = await startStandalone({ env: { MANIFEST: await agentFiles(service.port), ...keys, ...provider } });
  agent = agentClient(standalone.agentUrl, AGENT_API_KEY);
}, 180_000);
beforeEach(() => {
  service.received.length = 0;
});
afterAll(async () => {
  await standalone?.stop();
  await service?.close();
  await upstream?.close();
});

describe('an agent with a search service', () => {
  it('agent-server.md search: rules 70 to 75: asks it beside its policies, and answers from what it finds, which stays out of the log', async () => {
    onSearch = (response) => void response.writeHead(200).end(JSON.stringify({ results: [{ content: 'Hoses: two years.', title: 'Warranty', score: 0.8 }] }));
    upstream.answer({ text: ['Two years.'] });
    const { id } = await agent.createSession();
    await agent.postMessage(id, 'How long is the warranty of hoses?');
    const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');

    const [request, ...others] = service.received;
    expect(others).toEqual([]);
    expect([request?.method, request?.url, request?.headers.authorization]).toEqual(['POST', '/find', `Bearer ${SEARCH_API_KEY}`]);
    expect(JSON.parse(String(request?.body))).toMatchObject({
      ...{ query: 'How long is the warranty of hoses?', top_k: 3, session_id: id },
      messages: [{ role: 'user', text: 'How long is the warranty of hoses?' }],
    });
    expect(promptOf(upstream.requests.at(-1))).toContain('{"title":"Warranty","content":"Hoses: two years."}');
    expect(promptOf(upstream.questions.at(-1))).not.toContain('Hoses: two years.');
    expect(JSON.stringify(log)).not.toContain('Hoses: two years.');
    expect(log.findLast(({ kind }) => kind === 'assistant_message')).toMatchObject({ text: 'Two years.' });
    expect(standalone.output()).not.toContain(SEARCH_API_KEY);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ['fails', (response) => void response.writeHead(500).end()],
    ['does not answer in timeout_seconds', () => {}],
  ])('agent-server.md search: rule 72: answers without it when it %s', async (_, answer) => {
    onSearch = answer;
    upstream.answer({ text: ['I do not know.'] });
    const { id } = await agent.createSession();
    await agent.postMessage(id, 'How long is the warranty of hoses?');
    const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');

    expect(service.received).toHaveLength(1);
    expect(log.filter(({ kind }) => kind === 'assistant_message')).toMatchObject([{ text: 'I do not know.' }]);
    expect(JSON.stringify(log)).not.toContain('"error"');
    expect(promptOf(upstream.requests.at(-1))).not.toContain('looked up');
  });
});

function promptOf(request: { body: unknown } | undefined): string {
  const { messages } = z.object({ messages: z.array(z.looseObject({ content: z.unknown() })) }).parse(request?.body);
  return messages.map(({ content }) => String(content)).join('\n');
}

/** @returns the path of the manifest */
async function agentFiles(port: number): Promise<string> {
  const folder = await freeFolder('retrieval');
  const write = async (path: string, value: object) => {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), JSON.stringify(value));
    return join(folder, path);
  };
  const secret = (id: string) => `$${`{${id}}`}`;
  await write('documents/prompts/shop.yaml', { ...v1('shop'), text: 'You help customers of a shop.' });
  await write('documents/policies/leak.yaml', { ...v1('leak'), condition: 'the machine leaks', action: 'say: unplug the machine at once' });
  return write('manifest.yaml', {
    ...{ id: 'shop', name: 'Shop', version: '1' },
    agent_config: {
      runtime: { api_key: secret('AGENT_API_KEY') },
      platform: { public_key: secret('PLATFORM_PUBLIC_KEY'), secret_key: secret('PLATFORM_SECRET_KEY') },
      llms: { default: 'switchyard/assistant', api_key: secret('ROUTER_API_KEY') },
      context: { system_prompt: v1('shop'), language: 'match_user', policies: [v1('leak')] },
      search: { type: 'external', hostname: '127.0.0.1', port, path: '/find', api_key: secret('SEARCH_API_KEY'), top_k: 3, timeout_seconds: 4 },
    },
  });
}
