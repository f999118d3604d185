import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { busUsers } from '../../bus/nats/permissions.ts';
import { passwordVariableOf } from '../../bus/nats/server-config.ts';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { agentClient } from '../helpers/agent-client.ts';
import { shellBlocks } from '../helpers/documented-blocks.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { plainEnvironment, root } from '../helpers/run-program.ts';
import { type Cluster, startCluster } from '../helpers/start-cluster.ts';

const PAGE = 'docs/deploy.md';
const HEADING = 'Without containers';
/** Of the processes that the page starts, and of those with both roles. */
const PORTS = ['3000', '8080', '9091', '9092', '9093', '9094', '9095', '9096', '9097', '9098', '3001', '8081'];

/** The stores alone. */
let cluster: Cluster;
/** Two releases of one build. */
let before: string;
let after: string;
let blocks: string[];
let addresses: Map<string, string>;

beforeAll(async () => {
  const none = 0;
  cluster = await startCluster({
    roles: { 'router-gateway': none, 'agent-gateway': none, 'actor-host': none, 'router-worker': none, 'effect-worker': none },
    isFirstStart: true,
  });
  const folder = await freeFolder('releases with blanks');
  before = await release(join(folder, 'switchyard-before'));
  after = await release(join(folder, 'switchyard-after'));
  addresses = new Map(await Promise.all(PORTS.map(async (port) => [port, String(await freePort())] as const)));
  blocks = shellBlocks(PAGE, HEADING).map(atTheseStores);
  await writeSecrets();
});

afterAll(async () => {
  // Those of a test that has failed in between.
  const stop = 'for pid in */deployment/*.pid; do kill -9 "$(cat "$pid")" || true; done';
  await shell(stop, { cwd: join(before, '..') }).catch(() => {});
});

it('the commands of docs/deploy.md start every service, scale, restart, back up, restore and upgrade, without a container', async () => {
  const [start = '', scale = '', restart = '', backUp = '', restore = '', upgrade = ''] = blocks;
  expect(blocks).toHaveLength(6);

  expect(await shell(start, { cwd: before })).toMatch(/^ok +broker: /m);
  const agent = agentClient(`http://127.0.0.1:${addresses.get('8080')}`, secretOf('AGENT_API_KEY'));
  const { id } = await agent.createSession({ allow_greeting: false });
  await ask(agent, id, 'How long is the warranty?');
  expect(readFileSync(join(before, 'deployment/router-worker.env'), 'utf8')).not.toContain('HOUSE_SECRET');

  await shell(scale, { cwd: before });
  await shell(restart, { cwd: before });
  await ask(agent, id, 'And of the boiler?');

  await shell(backUp, { cwd: before });
  const stored = await agent.poll(id);
  expect(stored.filter(({ kind }) => kind === 'assistant_message')).toHaveLength(2);
  const [stopAll = '', startAll = ''] = restore.split(/^sleep 120 .*$/m);
  const [stops = '', restores = ''] = stopAll.split(/^(?=\. deployment)/m);
  await shell(stops, { cwd: before });
  await loseTheDatabase();
  await shell(`${restores}${startAll}`, { cwd: before });
  expect((await agent.poll(id)).slice(0, stored.length)).toEqual(stored);
  await ask(agent, id, 'Do you ship?');

  await shell(upgrade, { cwd: after });
  await ask(agent, id, 'When are you open?');

  const processes = (...commands: string[]) => shell(atTheseStores(commands.map((one) => `sh deploy/processes.sh ${one}`).join('\n')), { cwd: after });
  await processes('start router 9097 3001', 'start agent 9098 8081', 'ready 9097 9098', 'stop actor-host 9093', 'stop router-worker 9091');
  await ask(agentClient(`http://127.0.0.1:${addresses.get('8081')}`, secretOf('AGENT_API_KEY')), id, 'Until when?');
  await expect(processes('start nothing 9099')).rejects.toMatchObject({ stderr: 'there is no service nothing in dist/: build it, or correct the name\n' });

  const last = ['effect-worker 9092', 'router 9097', 'agent 9098', 'router-gateway 9094', 'agent-gateway 9095'];
  await processes(...last.map((one) => `stop ${one}`));
}, 480_000);

/** What a release has at the place of a clone. */
async function release(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (const name of ['deploy', 'dist', 'examples', 'node_modules', 'package.json', 'scripts']) await symlink(join(root, name), join(folder, name));
  return folder;
}

function atTheseStores(block: string): string {
  const router = String(cluster.environmentOf('router-worker')['ROUTER_CONFIG']);
  const text = block
    .replace(/nats:\/\/127\.0\.0\.1:4222/, cluster.nats.url)
    .replace(/redis:\/\/127\.0\.0\.1:6379/, cluster.redis.url)
    .replace(/postgres:\/\/switchyard:\S+/, cluster.postgres.url)
    // The example's provider is not on this machine.
    .replace('ROUTER_CONFIG=examples/router.yaml', `ROUTER_CONFIG='${router}'`);
  return [...addresses].reduce((one, [port, free]) => one.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), free), text);
}

/** By the lines of the page, with the passwords that the broker has. */
async function writeSecrets(): Promise<void> {
  const [generate = ''] = shellBlocks(PAGE, 'Start');
  await shell(generate.replace(/^docker .*$/gm, ''), { cwd: before });
  const path = join(before, '.env');
  const passwords = new Map(busUsers.map((user) => [passwordVariableOf(user), cluster.environmentOf(user)['NATS_PASSWORD']] as const));
  const lines = readFileSync(path, 'utf8').replaceAll(/^(NATS_PASSWORD_\w+)=.*$/gm, (line, name: string) => `${name}=${passwords.get(name) ?? line}`);
  writeFileSync(path, lines);
}

function secretOf(name: string): string {
  return new RegExp(`^${name}=(.+)$`, 'm').exec(readFileSync(join(before, '.env'), 'utf8'))?.[1] ?? '';
}

async function ask(agent: ReturnType<typeof agentClient>, sessionId: string, text: string): Promise<void> {
  const { offset } = await agent.postMessage(sessionId, text);
  const isAnswered = async () => (await agent.poll(sessionId, offset + 1)).some((event) => event.kind === 'status' && event.status === 'ready');
  await eventually(isAnswered, { timeoutMs: 120_000 });
}

async function loseTheDatabase(): Promise<void> {
  const client = new pg.Client({ connectionString: cluster.postgres.url });
  await client.connect();
  try {
    await client.query('drop schema public cascade; create schema public');
  } finally {
    await client.end();
  }
}

/** Pastes commands, in a shell that has exported secrets of other services. */
async function shell(commands: string, { cwd }: { cwd: string }): Promise<string> {
  const env = {
    ...plainEnvironment(),
    SWITCHYARD_ENV_FILE: undefined,
    NATS_PASSWORD: 'of-the-shell',
    HOUSE_SECRET: 'of the shell, and of no process of the page',
  };
  const { stdout } = await promisify(execFile)('bash', ['-e', '-c', commands], { timeout: 240_000, cwd, env });
  return stdout;
}
