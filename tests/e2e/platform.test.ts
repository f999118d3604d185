import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse } from 'yaml';
import { agentClient } from '../helpers/agent-client.ts';
import { documentPoints } from '../helpers/document-points.ts';
import { shellBlocks } from '../helpers/documented-blocks.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { plainEnvironment, root, runProgram } from '../helpers/run-program.ts';
import { builtProgram, fewerWasmTiers, type Standalone, startStandalone } from '../helpers/start-standalone.ts';

const KINDS = ['prompts', 'routines', 'policies', 'glossaries', 'macros', 'variable-sets'];
const PAIR = { PLATFORM_PUBLIC_KEY: 'pk-of-the-platform', PLATFORM_SECRET_KEY: 'sk-of-the-platform' };
const basic = { authorization: `Basic ${Buffer.from('pk-of-the-platform:sk-of-the-platform').toString('base64')}` };
const SAMPLE = join(root, 'examples/acme-support');

let platform: Standalone;
let folder: string;

beforeAll(async () => {
  platform = await startStandalone({ env: PAIR });
  folder = await freeFolder('agent');
}, 120_000);
afterAll(async () => {
  await platform.stop();
});

/** The sample agent's manifest, with another platform. */
async function manifestFor(baseUrl: string): Promise<string> {
  const manifest = parse(await readFile(join(SAMPLE, 'manifest.yaml'), 'utf8'));
  manifest.agent_config.platform.base_url = baseUrl;
  manifest.agent_config.llms.api_key = '${KEY_AT_THE_PLATFORM}';
  const path = join(folder, `${encodeURIComponent(baseUrl)}.json`);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify(manifest));
  return path;
}

/** Publishes the sample agent's documents. @returns the statuses */
async function publish(): Promise<number[]> {
  const statuses: number[] = [];
  for (const kind of KINDS) {
    const files = await readdir(join(SAMPLE, 'documents', kind)).catch(() => []);
    for (const file of files) {
      const document = parse(await readFile(join(SAMPLE, 'documents', kind, file), 'utf8'));
      const url = `${platform.routerUrl}/api/v1/platform/${kind}/${document.id}/versions/${document.version}`;
      statuses.push((await fetch(url, { method: 'PUT', headers: { ...basic, 'content-type': 'application/json' }, body: JSON.stringify(document) })).status);
    }
  }
  return statuses;
}

it('publishes a document by the command of docs/platform.md', async () => {
  const command = shellBlocks('docs/platform.md', 'Documents and platforms').join('\n').replace('http://127.0.0.1:3000', platform.routerUrl);
  // Published once, which the other tests do with the sample's own text: under another id.
  const { stdout } = await promisify(execFile)('bash', ['-e', '-c', command.replaceAll('acme-support', 'acme-helpdesk')], {
    timeout: 60_000,
    env: { ...plainEnvironment(), ...PAIR },
  });

  expect(JSON.parse(stdout)).toMatchObject({ id: 'acme-helpdesk', version: 1 });
});

async function answerOf(agent: Standalone): Promise<string> {
  const client = agentClient(agent.agentUrl, 'sk-of-the-agent-1234');
  const { id } = await client.createSession();
  await client.postMessage(id, 'How long is the warranty?');
  const log = await client.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
  const message = log.findLast((event) => event.kind === 'assistant_message');
  return message !== undefined && 'text' in message ? String(message.text) : JSON.stringify(log.at(-2));
}

async function usedAtPlatform(): Promise<number> {
  const headers = { authorization: `Bearer ${platform.keys.managementKey}` };
  const { data } = (await (await fetch(`${platform.routerUrl}/api/v1/activity`, { headers })).json()) as { data: { requests: number }[] };
  return data.reduce((sum, { requests }) => sum + requests, 0);
}

it.each(documentPoints)(
  'DESIGN 10: a start that is killed as it keeps the documents of its platform is repeated',
  async (point) => {
    await publish();
    const dataDir = join(await freeFolder('data'), 'data');
    const env = {
      ...PAIR,
      MANIFEST: await manifestFor(platform.routerUrl),
      AGENT_API_KEY: 'sk-of-the-agent-1234',
      KEY_AT_THE_PLATFORM: platform.keys.routerKey,
    };
    const ports = { ROUTER_PORT: '0', AGENT_PORT: '0', DATA_DIR: dataDir };
    const killed = runProgram(builtProgram, { env: { ...fewerWasmTiers, ...env, ...ports, FAIL_POINT: `${point}:kill:2` } });

    expect(await killed.exited).toEqual({ code: null, signal: 'SIGKILL' });
    const agent = await startStandalone({ dataDir, env });
    expect(await answerOf(agent)).toMatch(/24 months|two years|2 years|warranty/i);
    expect((await agent.stop()).code).toBe(0);
  },
  240_000,
);

it('DESIGN 10: an agent has its documents and its model calls at another Switchyard, and starts again without it', async () => {
  await publish();
  expect(new Set(await publish())).toEqual(new Set([200]));
  const env = {
    ...PAIR,
    MANIFEST: await manifestFor(platform.routerUrl),
    AGENT_API_KEY: 'sk-of-the-agent-1234',
    KEY_AT_THE_PLATFORM: platform.keys.routerKey,
  };
  const agent = await startStandalone({ env });

  expect(await answerOf(agent)).toMatch(/24 months|two years|2 years|warranty/i);
  await eventually(async () => (await usedAtPlatform()) > 0, { timeoutMs: 60_000 });
  expect(agent.output()).not.toContain(platform.keys.routerKey);
  expect((await agent.stop()).code).toBe(0);
  await platform.stop();

  const again = await startStandalone({ dataDir: agent.dataDir, env });
  expect(again.output()).toContain('documents that were fetched before are used');
  const client = agentClient(again.agentUrl, 'sk-of-the-agent-1234');
  expect((await client.createSession()).id).toMatch(/./);
  // Its router is away, and it says so.
  expect(await answerOf(again)).toContain('error');
  expect((await again.stop()).code).toBe(0);
}, 240_000);

it('a start whose platform accepts and sends nothing ends with one line', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const baseUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const data = join(await freeFolder('data'), 'data');
  const ports = { ROUTER_PORT: '0', AGENT_PORT: '0', DATA_DIR: data };
  const env = {
    ...fewerWasmTiers,
    ...PAIR,
    ...ports,
    MANIFEST: await manifestFor(baseUrl),
    AGENT_API_KEY: 'sk-of-the-agent-1234',
    KEY_AT_THE_PLATFORM: 'sk-1',
  };
  const program = runProgram(builtProgram, { env });
  const { code } = await program.exited;
  silent.close();

  expect(code).toBe(1);
  const lines = program
    .output()
    .split('\n')
    .filter((line) => line.startsWith("Switchyard can't start"));
  expect(lines).toEqual([expect.stringMatching(/the platform does not answer within \d s/)]);
  expect(program.output()).not.toContain('sk-of-the-platform');
}, 120_000);
