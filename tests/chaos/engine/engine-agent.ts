import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freeFolder } from '../../helpers/free-folder.ts';

const v1 = (id: string) => ({ id, version: 1 });

/** An agent with a policy of high criticality that has a tool, a routine with a tool step, and a search; and a router whose provider and moderation are the test's own. */
export async function writeEngineAgent({
  toolPort,
  searchPort,
  moderationPort,
  modelUrl,
}: Record<'toolPort' | 'searchPort' | 'moderationPort', number> & { modelUrl: string }): Promise<{
  MANIFEST: string;
  ROUTER_CONFIG: string;
}> {
  const folder = await freeFolder('engine');
  const write = async (path: string, value: object) => {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), JSON.stringify(value));
    return join(folder, path);
  };
  await write('documents/prompts/desk.yaml', { ...v1('desk'), text: 'You book visits.' });
  const policy = { ...v1('book'), condition: 'the customer wants a visit', action: 'book it', tools: ['ledger:book'], criticality: 'high', continuous: false };
  await write('documents/policies/book.yaml', policy);
  await write('documents/routines/visit.yaml', {
    ...v1('visit'),
    title: 'Visit',
    conditions: ['the customer wants a visit'],
    steps: [
      { id: 'which', kind: 'chat', chat_state: 'Ask for the key.' },
      { id: 'look', kind: 'tool', tool_state: ['ledger:look'] },
      { id: 'confirm', kind: 'chat', chat_state: 'Confirm the visit.' },
    ],
    transitions: [
      { from: 'which', to: 'look' },
      { from: 'look', to: 'confirm' },
      { from: 'confirm', to: 'end' },
    ],
  });
  const manifest = {
    ...{ id: 'desk', name: 'Desk', version: '1' },
    agent_config: {
      runtime: { api_key: '${AGENT_API_KEY}' },
      platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
      llms: { default: 'phases/agent', api_key: '${ROUTER_API_KEY}' },
      context: { system_prompt: v1('desk'), language: 'match_user', policies: [v1('book')], routines: [v1('visit')] },
      mcps: [{ id: 'ledger', hostname: 'http://127.0.0.1', port: toolPort }],
      search: { type: 'external', hostname: '127.0.0.1', port: searchPort, path: '/find', api_key: '${SEARCH_API_KEY}', top_k: 1, timeout_seconds: 60 },
    },
  };
  const router = {
    providers: [{ slug: 'phases', name: 'phases', kind: 'openai-compatible', base_url: modelUrl }],
    models: [{ id: 'phases/agent', endpoints: [{ provider: 'phases', upstream_model: 'phases' }] }],
    plugins: { moderation: { endpoint: { url: `http://127.0.0.1:${moderationPort}/v1/moderations`, timeout_ms: 60_000 } } },
    keys: [{ id: 'one', key: '${ROUTER_API_KEY}' }],
  };
  return { MANIFEST: await write('manifest.yaml', manifest), ROUTER_CONFIG: await write('router.json', router) };
}
