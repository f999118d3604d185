import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A shop's agent: one policy that calls a tool, and one that only answers. */
export const SHOP = {
  'manifest.yaml': {
    ...{ id: 'shop', name: 'Shop', version: '1' },
    agent_config: {
      runtime: { api_key: '${AGENT_API_KEY}' },
      platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
      llms: { default: 'openai/gpt-5', api_key: '${ROUTER_API_KEY}' },
      mcps: [{ id: 'shop', hostname: 'http://localhost', port: 1 }],
      context: {
        ...{ system_prompt: { id: 'shop', version: 1 }, language: 'match_user' },
        policies: [
          { id: 'order-status', version: 1 },
          { id: 'complaints', version: 1 },
        ],
      },
    },
  },
  'documents/prompts/shop.json': { id: 'shop', version: 1, text: 'You help customers of a shop. The shop is open on weekdays.' },
  'documents/policies/order-status.json': {
    ...{ id: 'order-status', version: 1, condition: 'The customer asks where the order is', action: 'Say where the order is.' },
    tools: ['shop:order'],
  },
  'documents/policies/complaints.json': { id: 'complaints', version: 1, condition: 'The customer complains about rudeness', action: 'Apologise.' },
};

/** @param files by their path; objects as JSON */
export async function folderWith(files: Readonly<Record<string, unknown>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'switchyard-operator-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}
