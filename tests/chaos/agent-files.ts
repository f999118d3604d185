import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freeFolder } from '../helpers/free-folder.ts';

export const ROUTINE = 'book-it';
export const WEBHOOK = 'shop';
export const WEBHOOK_SECRET = 'webhook-secret-of-the-chaos-suite';
/** A text and a number. */
export const VARIABLES = ['plan', 'visits'] as const;
/** Started by deliveries alone. */
const JUDGED = 'note-it';

/** An agent with one routine that calls both counting tools and one that calls none, a webhook of both, and a router whose agent's model and clients' provider are the test's own. */
export async function writeAgentFiles(toolPort: number, modelUrl: string, providerUrl: string): Promise<{ MANIFEST: string; ROUTER_CONFIG: string }> {
  const folder = await freeFolder('chaos');
  const write = async (path: string, value: object) => {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), JSON.stringify(value));
    return join(folder, path);
  };
  await write('documents/prompts/chaos.yaml', { id: 'chaos', version: 1, title: 'Role of the agent', type: 'text', text: 'You repeat the message.' });
  const text = { type: 'string' };
  await write(`documents/routines/${ROUTINE}.yaml`, {
    id: ROUTINE,
    version: 1,
    title: 'Book it',
    description: 'Books once, looks it up, and says what came of both.',
    kind: 'autonomous',
    instructions: 'Book it, look it up, and say what came of both.',
    tools: ['ledger:*'],
    input_schema: { type: 'object', additionalProperties: false, required: ['key'], properties: { key: text, noted: { type: 'boolean' } } },
    output_schema: { type: 'object', additionalProperties: false, required: ['booked', 'looked'], properties: { booked: text, looked: text } },
    timeout_seconds: 120,
    max_iterations: 4,
  });
  await write(`documents/routines/${JUDGED}.yaml`, {
    id: JUDGED,
    version: 1,
    kind: 'autonomous',
    instructions: 'Note it.',
    conditions: ['There is a key'],
    autonomous: { match: { noted: true } },
    timeout_seconds: 120,
    max_iterations: 4,
  });
  await write('documents/variable-sets/account.yaml', {
    id: 'account',
    version: 1,
    variables: [{ name: VARIABLES[0] }, { name: VARIABLES[1], type: 'number' }],
  });
  const webhook = { name: WEBHOOK, secret_env: '${WEBHOOK_SECRET}', header: 'x-signature', routines: [ROUTINE, JUDGED] };
  const manifest = {
    id: 'chaos',
    name: 'Chaos',
    version: '1',
    agent_config: {
      runtime: { api_key: '${AGENT_API_KEY}' },
      platform: { public_key: '${PLATFORM_PUBLIC_KEY}', secret_key: '${PLATFORM_SECRET_KEY}' },
      llms: { default: 'chaos/agent', api_key: '${ROUTER_API_KEY}' },
      context: {
        system_prompt: { id: 'chaos', version: 1 },
        language: 'match_user',
        routines: [ROUTINE, JUDGED].map((id) => ({ id, version: 1 })),
        variables: [{ id: 'account', version: 1 }],
      },
      mcps: [{ id: 'ledger', hostname: 'http://127.0.0.1', port: toolPort }],
      webhooks: [webhook],
    },
  };
  const provider = (slug: string, baseUrl: string) => ({ slug, name: slug, kind: 'openai-compatible', base_url: baseUrl });
  const model = (id: string, slug: string) => ({ id, endpoints: [{ provider: slug, upstream_model: slug }] });
  const router = {
    providers: [provider('agent', modelUrl), provider('first', providerUrl)],
    models: [model('chaos/agent', 'agent'), model('test/first', 'first')],
    keys: [{ id: 'one', key: '${ROUTER_API_KEY}' }],
  };
  return { MANIFEST: await write('manifest.yaml', manifest), ROUTER_CONFIG: await write('router.json', router) };
}
