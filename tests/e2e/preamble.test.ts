import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../upstreams/openai-upstream.ts';

const AGENT_API_KEY = 'sk-agent-of-the-shop';
const EXAMPLES = ['One moment, please.', 'Let me have a look.'];
const v1 = (id: string) => ({ id, version: 1 });

let upstream: OpenAiUpstream;
let standalone: Standalone;
let agent: AgentClient;

beforeAll(async () => {
  upstream = await openOpenAiUpstream();
  const keys = { AGENT_API_KEY, ROUTER_API_KEY: 'sk-router-of-the-shop', PLATFORM_PUBLIC_KEY: 'pk', PLATFORM_SECRET_KEY: 'sk' };
  const provider = { OPENAI_API_KEY: 'sk-upstream-0123456789', OPENAI_BASE_URL: upstream.baseUrl, OPENAI_MODELS: 'small' };
  standalone = await startStandalone({ env: { MANIFEST: await agentFiles(), ...keys, ...provider } });
  agent = agentClient(standalone.agentUrl, AGENT_API_KEY);
}, 180_000);
afterAll(async () => {
  await standalone?.stop();
  await upstream?.close();
});

describe('an agent with preambles', () => {
  it('agent-server.md preamble: rules 111 to 113: acknowledges the first two messages before it types, each with a line of its own', async () => {
    // The other questions take their time, so that a line comes before the reply. On a busy machine it may be later than 1.5 s, and is then left out.
    upstream.answerQuestionsAfter((name) => (name === 'write_preamble' ? 0 : 500));
    const lines = await eventually(
      async () => {
        const { id } = await agent.createSession();
        const turns = [await turn(id, 'Hello'), await turn(id, 'My machine leaks'), await turn(id, 'Thank you')];
        for (const log of turns) expectInOrder(log);
        const found = turns.map((log) => log.flatMap((event) => (event.kind === 'preamble' ? [event.text] : [])));
        return found.flat().length > 1 && found;
      },
      { timeoutMs: 60_000 },
    );

    expect(lines).toEqual([[EXAMPLES[0]], [EXAMPLES[1]], []]);
  });
});

/** Statuses and texts of a turn: a preamble stands before the first stage. */
function expectInOrder(log: readonly ConversationEvent[]): void {
  const kinds = log.map((event) => (event.kind === 'status' ? event.status : event.kind)).filter((kind) => kind !== 'user_message');
  const withoutLine = kinds.filter((kind) => kind !== 'preamble');
  expect(kinds.slice(0, 1)).toEqual(['acknowledged']);
  expect([-1, 1]).toContain(kinds.indexOf('preamble'));
  expect(withoutLine).toEqual(['acknowledged', 'processing', 'typing', 'assistant_message', 'ready']);
}

async function turn(id: string, text: string): Promise<ConversationEvent[]> {
  upstream.answer({ text: ['Unplug it.'], delayMs: 20 });
  const { offset } = await agent.postMessage(id, text);
  const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready' && event.offset > offset);
  return log.filter((event) => event.offset >= offset);
}

/** @returns the path of the manifest */
async function agentFiles(): Promise<string> {
  const folder = await freeFolder('preamble');
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
      context: { system_prompt: v1('shop'), language: 'match_user', policies: [v1('leak')], preamble: { examples: EXAMPLES } },
    },
  });
}
