import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { freeFolder } from '../../helpers/free-folder.ts';
import { ECHOES } from './echoing-servers.ts';

export const KINDS = ['openai-compatible', 'anthropic', 'gemini', 'bedrock', 'responses'] as const;
export const PLAIN = 'openai-compatible/plain';
export const ROUTINE = 'note-it';
export const WEBHOOK = 'shop';

interface Ports {
  provider: number;
  tools: number;
}

/** An agent with secret bundles, a tool server with a key and a webhook; a router with a provider of each dialect. @returns the settings that name them */
export async function writePlantedFiles({ provider, tools }: Ports, hookSecret: string): Promise<Record<string, string>> {
  const folder = await freeFolder('planted');
  const write = async (path: string, content: object | string) => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), typeof content === 'string' ? content : JSON.stringify(content));
    return join(folder, path);
  };
  await write('secrets/hooks.env', `HOOK_SECRET=${hookSecret}\n`);
  await write('documents/prompts/planted.yaml', { id: 'planted', version: 1, text: 'You note things.' });
  const routine = { id: ROUTINE, version: 1, kind: 'autonomous', instructions: 'Note it.', timeout_seconds: 60, max_iterations: 2 };
  await write(`documents/routines/${ROUTINE}.yaml`, routine);
  await write('documents/routines/with-tools.yaml', { ...routine, id: 'with-tools', tools: ['broken:*'] });
  const routines = [ROUTINE, 'with-tools'].map((id) => ({ id, version: 1 }));
  const manifest = {
    id: 'planted',
    name: 'Planted',
    version: '1',
    endpoint: true,
    secrets: [{ secret_name: 'hooks' }],
    agent_config: {
      runtime: { api_key: '${AGENT_API_KEY}' },
      platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
      llms: { default: PLAIN, api_key: '${ROUTER_API_KEY}' },
      context: { system_prompt: { id: 'planted', version: 1 }, language: 'match_user', routines },
      mcps: [{ id: 'broken', hostname: 'http://127.0.0.1', port: tools, api_key: '${TOOL_KEY}' }],
      webhooks: [{ name: WEBHOOK, secret_env: '${HOOK_SECRET}', header: 'x-signature', routines: [ROUTINE] }],
    },
  };
  const baseUrl = `http://127.0.0.1:${provider}`;
  const router = {
    providers: KINDS.map((kind) => ({ slug: kind, name: kind, kind, base_url: `${baseUrl}/${kind}`, api_key: '${PROVIDER_KEY}' })),
    models: KINDS.flatMap((kind) => ['plain', ...ECHOES].map((how) => ({ id: `${kind}/${how}`, endpoints: [{ provider: kind, upstream_model: how }] }))),
    keys: [
      { id: 'one', key: '${ROUTER_API_KEY}' },
      { id: 'management', key: '${ROUTER_MANAGEMENT_KEY}', management: true },
    ],
  };
  return {
    MANIFEST: await write('manifest.yaml', manifest),
    ROUTER_CONFIG: await write('router.json', router),
    SECRETS_DIR: join(folder, 'secrets'),
  };
}
