import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { openSdkToolServer } from '../../services/effect-worker/test-support/tool-server-doubles.ts';
import { freeFolder } from './free-folder.ts';

export interface ShopTools {
  port: number;
  /** Order numbers of the calls, in order. */
  stated: string[];
  refunded: string[];
  close(): Promise<void>;
}

/** A real MCP server with a tool that may be called again and one that may not. */
export async function openShopTools(): Promise<ShopTools> {
  const [stated, refunded]: [string[], string[]] = [[], []];
  const inputSchema = { order_number: z.string() };
  const recording =
    (calls: string[], word: string) =>
    async ({ order_number: number }: { order_number: string }) => {
      calls.push(number);
      return { content: [{ type: 'text' as const, text: `${number} was ${word}` }] };
    };
  const server = await openSdkToolServer((mcp) => {
    mcp.registerTool('order_state', { description: 'State of an order', inputSchema, annotations: { readOnlyHint: true } }, recording(stated, 'sent'));
    mcp.registerTool('refund', { description: 'Refunds an order', inputSchema }, recording(refunded, 'refunded'));
  });
  return { port: server.port, stated, refunded, close: server.close };
}

/** An agent whose policies, and one routine, have these tools. */
export async function toolAgentFiles(toolPort: number): Promise<{ MANIFEST: string }> {
  const folder = await freeFolder('tools');
  const write = async (path: string, value: object) => {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), JSON.stringify(value));
    return join(folder, path);
  };
  await write('documents/prompts/shop.yaml', { id: 'shop', version: 1, title: 'Role', type: 'text', text: 'You help customers of a shop.' });
  const policies = [
    { id: 'state', version: 1, condition: 'the customer asks for the state of an order', action: 'say how the order stands', tools: ['shop:order_state'] },
    { id: 'refund', version: 1, condition: 'the customer wants a refund', action: 'refund the order', tools: ['shop:refund'] },
  ];
  for (const policy of policies) await write(`documents/policies/${policy.id}.yaml`, policy);
  await write('documents/routines/complaint.yaml', {
    id: 'complaint',
    version: 1,
    title: 'Complaint',
    conditions: ['the customer complains of a broken machine'],
    steps: [
      { id: 'look', kind: 'tool', tool_state: ['shop:order_state'], tool_instruction: 'look the order up' },
      { id: 'sorry', kind: 'chat', chat_state: 'apologise' },
    ],
    transitions: [
      { from: 'root', to: 'look' },
      { from: 'look', to: 'sorry' },
      { from: 'sorry', to: 'end' },
    ],
  });
  const named = (id: string) => ({ id, version: 1 });
  return {
    MANIFEST: await write('manifest.yaml', {
      id: 'shop',
      name: 'Shop',
      version: '1',
      agent_config: {
        runtime: { api_key: '${AGENT_API_KEY}' },
        platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
        llms: { default: 'switchyard/assistant', api_key: '${ROUTER_API_KEY}' },
        context: { system_prompt: named('shop'), language: 'match_user', policies: policies.map(({ id }) => named(id)), routines: [named('complaint')] },
        mcps: [{ id: 'shop', hostname: 'http://127.0.0.1', port: toolPort }],
      },
    }),
  };
}
