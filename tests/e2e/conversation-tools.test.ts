import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConversationEvent } from '../../shared/contracts/agent/conversation-event.ts';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { openShopTools, type ShopTools, toolAgentFiles } from '../helpers/tool-agent.ts';

const AGENT_API_KEY = 'sk-agent-of-the-shop';

let tools: ShopTools;
let standalone: Standalone;
let agent: AgentClient;

beforeAll(async () => {
  tools = await openShopTools();
  const keys = { AGENT_API_KEY, ROUTER_API_KEY: 'sk-router-of-the-shop', PLATFORM_PUBLIC_KEY: 'pk', PLATFORM_SECRET_KEY: 'sk' };
  standalone = await startStandalone({ env: { ...(await toolAgentFiles(tools.port)), ...keys } });
  agent = agentClient(standalone.agentUrl, AGENT_API_KEY);
  // The tool lists are read in the background: a turn before them has no tools.
  await eventually(async () => (await conversation('state of order A-0')).some(({ kind }) => kind === 'tool'), { timeoutMs: 60_000 });
  tools.stated.length = 0;
}, 180_000);
afterAll(async () => {
  await standalone?.stop();
  await tools?.close();
});

async function conversation(text: string): Promise<ConversationEvent[]> {
  const { id } = await agent.createSession({ allow_greeting: false });
  await agent.postMessage(id, text);
  return agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
}

const kindsOf = (log: readonly ConversationEvent[]) =>
  log.map((event) => (event.kind === 'status' ? `${event.status}${event.stage === null ? '' : ` ${event.stage}`}` : event.kind));

describe('tools in a conversation, by a real MCP server', () => {
  it('rule 50: a policy in force calls its tool, with the arguments of the conversation; the reply knows the result', async () => {
    const log = await conversation('What is the state of my order A-17?');
    expect(kindsOf(log)).toEqual(['user_message', 'acknowledged', 'processing matching', 'processing tools', 'tool', 'typing', 'assistant_message', 'ready']);
    expect(log.find(({ kind }) => kind === 'tool')).toMatchObject({
      source: 'ai_agent',
      tool_calls: [{ tool_id: 'shop:order_state', arguments: { order_number: 'A-17' }, result: { data: 'A-17 was sent' } }],
    });
    expect(log.find(({ kind }) => kind === 'assistant_message')).toMatchObject({ text: expect.stringContaining('A-17 was sent') });
    expect(tools.stated).toEqual(['A-17']);
    expect(tools.refunded).toEqual([]);
  });

  it('rule 50: a policy that is not in force calls nothing', async () => {
    const before = tools.stated.length + tools.refunded.length;
    const log = await conversation('Good morning!');
    expect(kindsOf(log)).not.toContain('tool');
    expect(tools.stated.length + tools.refunded.length).toBe(before);
  });

  it('rule 58: a call without its arguments is not made', async () => {
    const before = tools.refunded.length;
    const log = await conversation('I want a refund, please');
    expect(kindsOf(log)).toEqual(['user_message', 'acknowledged', 'processing matching', 'processing tools', 'typing', 'assistant_message', 'ready']);
    expect(tools.refunded.length).toBe(before);
  });

  it('rule 64: the tool step of a routine calls its tool, and the routine goes on', async () => {
    const log = await conversation('I complain: the machine A-18 is broken');
    expect(log.find(({ kind }) => kind === 'tool')).toMatchObject({ tool_calls: [{ tool_id: 'shop:order_state', arguments: { order_number: 'A-18' } }] });
    expect(kindsOf(log).at(-2)).toBe('assistant_message');
  });
});
