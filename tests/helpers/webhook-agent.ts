import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { shellBlocks } from './documented-blocks.ts';
import { freeFolder } from './free-folder.ts';
import { plainEnvironment, root } from './run-program.ts';

const CLAIMS_SECRET = 'a-long-random-text';
const ROUTINE = 'documents/routines/triage-warranty-claim.yaml';
const SHARED = `
  webhooks:
    - name: shop
      secret_env: \${CLAIMS_WEBHOOK_SECRET}
      header: X-Hub-Signature-256
      prefix: sha256=
      routines: [triage-warranty-claim, count-events, judge-events, never]
`;

function routine(id: string, more: string): string {
  return `id: ${id}\nversion: 1\nkind: autonomous\ninstructions: Note the event.\n${more}`;
}

/** The section of docs/webhooks.md on webhooks that start runs: the lines for the routine's file, and those of a shell. */
export function documentedWebhook(): { yaml: string; shell: string } {
  const [, section = ''] = readFileSync(join(root, 'docs/webhooks.md'), 'utf8').split('\n## Webhooks that start runs\n');
  const blockOf = (language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(section)?.[1] ?? '';
  return { yaml: blockOf('yaml'), shell: blockOf('sh') };
}

/**
 * An agent and its keys, made by the lines of docs/quick-start.md without the last one, which starts it.
 * @returns its folder, the file of its keys, and the keys
 */
export async function quickStartAgent(): Promise<{ folder: string; envFile: string; keys: Record<string, string> }> {
  const [folder, envFile] = [join(await freeFolder('agent'), 'my-agent'), join(await freeFolder('env'), '.env')];
  const lines = shellBlocks('docs/quick-start.md', '5. An agent of your own').join('\n').trim().split('\n');
  if (lines.pop() !== 'MANIFEST=my-agent/manifest.yaml npm start') throw new Error('the last line of the section starts the agent');
  const commands = lines.join('\n').replaceAll('my-agent', `'${folder}'`).replaceAll('.env', `'${envFile}'`);
  await promisify(execFile)('bash', ['-e', '-c', commands], { timeout: 120_000, cwd: root, env: { ...plainEnvironment(), SWITCHYARD_ENV_FILE: envFile } });
  const keys = readFileSync(envFile, 'utf8').trim().split('\n');
  return { folder, envFile, keys: Object.fromEntries(keys.map((line) => line.split('=') as [string, string])) };
}

/** The sample agent with the routine's webhook of docs/webhooks.md, and one of the manifest. @returns its settings */
export async function webhookAgent(copied?: { folder: string; keys: Record<string, string> }): Promise<Record<string, string>> {
  const folder = copied?.folder ?? (await freeFolder('webhook-agent'));
  if (copied === undefined) cpSync(join(root, 'examples/acme-support'), folder, { recursive: true });
  appendFileSync(join(folder, ROUTINE), documentedWebhook().yaml);
  const documents = {
    'count-events': routine('count-events', 'autonomous:\n  match: { claim_id: [C-2, C-3] }\n'),
    'judge-events': routine('judge-events', 'conditions: [The event is about a machine]\n'),
    never: routine('never', 'autonomous:\n  match: { claim_id: [] }\n'),
  };
  for (const [id, text] of Object.entries(documents)) writeFileSync(join(folder, `documents/routines/${id}.yaml`), text);
  const path = join(folder, 'manifest.yaml');
  const named = Object.keys(documents).map((id) => `      - { id: ${id}, version: 1 }\n`);
  const manifest = readFileSync(path, 'utf8').replace('    routines:\n', `    routines:\n${named.join('')}`);
  writeFileSync(path, `${manifest.trimEnd()}\n${SHARED}`);
  // A manifest of one's own names variables that the start does not make.
  const keys = { AGENT_API_KEY: 'sk-agent-of-the-webhook-tests', ROUTER_API_KEY: 'sk-router-of-the-webhook-tests' };
  const given = copied?.keys ?? { ...keys, PLATFORM_PUBLIC_KEY: 'pk-webhooks', PLATFORM_SECRET_KEY: 'sk-webhooks' };
  return { MANIFEST: path, CLAIMS_WEBHOOK_SECRET: CLAIMS_SECRET, ...given };
}

/** Posts a delivery as GitHub signs it. */
export async function deliver<Body>(agentUrl: string, name: string, body: object): Promise<{ status: number; body: Body }> {
  const text = JSON.stringify(body);
  const signature = createHmac('sha256', CLAIMS_SECRET).update(text).digest('hex');
  const response = await fetch(`${agentUrl}/webhooks/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` },
    body: text,
    signal: AbortSignal.timeout(60_000),
  });
  return { status: response.status, body: (await response.json()) as Body };
}
