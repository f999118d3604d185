import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openSdkToolServer, type SdkToolServer } from '../../services/effect-worker/test-support/tool-server-doubles.ts';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../upstreams/openai-upstream.ts';

const AGENT_API_KEY = 'sk-agent-of-the-shop';
const v1 = (id: string) => ({ id, version: 1 });

let upstream: OpenAiUpstream;
let crm: SdkToolServer;
/** Customers whose plan was asked for. */
const asked: string[] = [];
let standalone: Standalone;
let agent: AgentClient;

beforeAll(async () => {
  upstream = await openOpenAiUpstream();
  crm = await openSdkToolServer((mcp) => {
    const plan = { description: 'The plan of a customer', inputSchema: { customer_id: z.string() }, annotations: { readOnlyHint: true } };
    mcp.registerTool('plan', plan, async ({ customer_id: id }) => {
      asked.push(id);
      return { content: [{ type: 'text', text: `plan of ${id}` }] };
    });
  });
  const keys = { AGENT_API_KEY, ROUTER_API_KEY: 'sk-router-of-the-shop', PLATFORM_PUBLIC_KEY: 'pk', PLATFORM_SECRET_KEY: 'sk' };
  const provider = { OPENAI_API_KEY: 'sk-upstream-0123456789', OPENAI_BASE_URL: upstream.baseUrl, OPENAI_MODELS: 'small' };
  standalone = await startStandalone({ env: { MANIFEST: await agentFiles(crm.port), ...keys, ...provider, STREAMING: 'true' } });
  agent = agentClient(standalone.agentUrl, AGENT_API_KEY);
}, 180_000);
afterAll(async () => {
  await standalone?.stop();
  await crm?.close();
  await upstream?.close();
});

describe('what an agent knows of its customer', () => {
  it('DESIGN 5: rules 90 to 97: the name, values that were set, and one that a tool fetches; the greeting has a value', async () => {
    await send('POST', '/customers', { id: 'ada', name: 'Ada Lovelace', tags: ['vip'] });
    await send('PUT', '/customers/ada/variables/nick', { data: 'Countess' });
    await send('PUT', '/variables/perk/values/tag:vip', { data: 'free parts' });
    await send('PUT', '/variables/perk/values/DEFAULT', { data: 'none' });
    upstream.answer({ text: ['Hello.'] });
    const { id } = await agent.createSession({ customer_id: 'ada' });
    const log = await untilKnown(id, 'plan of ada');
    const prompt = promptOf(upstream.requests.at(-1));

    expect(log[0]).toMatchObject({ kind: 'assistant_message', text: 'Welcome, Countess!' });
    for (const [variable, value] of [
      ['customer name', 'Ada Lovelace'],
      ['perk', 'free parts'],
      ['plan', 'plan of ada'],
    ])
      expect(prompt).toContain(`{"variable":"${variable}","value":"${value}"}`);
    expect(prompt).not.toContain('"nick"');
    expect(promptOf(upstream.questions.at(-1))).toContain('{"variable":"plan","value":"plan of ada"}');
    expect(asked).toEqual(['ada']);
    expect(await send('GET', '/customers/ada/variables/plan')).toMatchObject({ data: 'plan of ada' });
  });

  it('rule 92: a guest has values of its own, and no name', async () => {
    upstream.answer({ text: ['Hello.'] });
    const { id, customer_id: guest } = await agent.createSession();
    const log = await untilKnown(id, `plan of ${guest}`);
    const prompt = promptOf(upstream.requests.at(-1));

    expect(log[0]).toMatchObject({ kind: 'assistant_message', text: 'Welcome, friend!' });
    expect(prompt).not.toContain('customer name');
    expect(prompt).toContain('{"variable":"perk","value":"none"}');
    expect(prompt).toContain(`{"variable":"plan","value":"plan of ${guest}"}`);
  });
});

it('rule 85: readers see nothing of a reply that misses a policy of high criticality, and the second one as it is generated', async () => {
  const { id } = await agent.createSession({ allow_greeting: false });
  upstream.answer({ text: ['Wipe ', 'it ', 'up.'] }, { text: ['Unplug ', 'the ', 'machine ', 'at ', 'once.'], delayMs: 50 });
  const { frames } = await agent.openStream(id, ({ data }) => data['status'] === 'ready');
  await agent.postMessage(id, 'My machine leaks');
  const seen = await frames;
  const said = seen.filter(({ event }) => event === 'assistant_message').map(({ data }) => data['text']);
  const parts = seen.filter(({ event }) => event === 'delta' || event === 'snapshot');

  expect(said).toEqual(['Unplug the machine at once.']);
  expect(parts.length).toBeGreaterThan(0);
  expect(JSON.stringify(parts)).not.toContain('Wipe');
  expect(new Set(parts.map(({ data }) => data['message_id']))).toEqual(
    new Set(seen.filter(({ event }) => event === 'assistant_message').map(({ data }) => data['id'])),
  );
  expect(promptOf(upstream.requests.at(-1))).toContain('A first version of this reply was not sent');
  await eventually(() => upstream.questions.some((one) => JSON.stringify(one.body).includes('check_reply')));
});

/** A turn whose prompt has the text: on a busy machine a tool's value comes after the first one. */
async function untilKnown(id: string, text: string): Promise<ConversationEvent[]> {
  let log: ConversationEvent[] = [];
  await eventually(
    async () => {
      const { offset } = await agent.postMessage(id, 'Good morning');
      log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready' && event.offset > offset);
      return promptOf(upstream.requests.at(-1)).includes(text);
    },
    { timeoutMs: 60_000 },
  );
  return log;
}

async function send(method: string, path: string, body?: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${AGENT_API_KEY}`, 'content-type': 'application/json' };
  const response = await fetch(`${standalone.agentUrl}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

function promptOf(request: { body: unknown } | undefined): string {
  const { messages } = z.object({ messages: z.array(z.looseObject({ content: z.unknown() })) }).parse(request?.body);
  return messages.map(({ content }) => String(content)).join('\n');
}

/** @returns the path of the manifest */
async function agentFiles(toolPort: number): Promise<string> {
  const folder = await freeFolder('customer');
  const write = async (path: string, value: object) => {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), JSON.stringify(value));
    return join(folder, path);
  };
  const macro = (id: string) => `$${`{${id}}`}`;
  await write('documents/prompts/shop.yaml', { ...v1('shop'), text: 'You help customers of a shop.' });
  await write('documents/policies/leak.yaml', {
    ...v1('leak'),
    condition: 'the machine leaks',
    action: 'say: unplug the machine at once',
    criticality: 'high',
  });
  await write('documents/macros/nickname.yaml', { ...v1('nickname'), variable: { set: 'customer', name: 'nick', fallback: 'friend' } });
  const variables = [{ name: 'nick', expose: false }, { name: 'perk' }, { name: 'plan', tool_id: 'crm:plan', freshness: '0 0 1 1 *' }];
  await write('documents/variable-sets/customer.yaml', { ...v1('customer'), variables });
  const context = { system_prompt: v1('shop'), language: 'match_user', greeting: `Welcome, ${macro('nickname')}!` };
  const lists = { policies: [v1('leak')], macros: [v1('nickname')], variables: [v1('customer')] };
  return write('manifest.yaml', {
    ...{ id: 'shop', name: 'Shop', version: '1' },
    agent_config: {
      runtime: { api_key: macro('AGENT_API_KEY') },
      platform: { public_key: macro('PLATFORM_PUBLIC_KEY'), secret_key: macro('PLATFORM_SECRET_KEY') },
      llms: { default: 'switchyard/assistant', api_key: macro('ROUTER_API_KEY') },
      context: { ...context, ...lists },
      mcps: [{ id: 'crm', hostname: 'http://127.0.0.1', port: toolPort }],
    },
  });
}
