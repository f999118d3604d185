import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { CTRL_C, inTerminal } from '../helpers/in-terminal.ts';
import { plainEnvironment, root, runProgram } from '../helpers/run-program.ts';
import { fewerWasmTiers } from '../helpers/start-standalone.ts';

const run = promisify(execFile);
/** Installing its dependencies, and the first start, on a busy machine. */
const READY_TIMEOUT_MS = 300_000;

/** Beside them is the file of `npm pack`. */
let folder: string;
let folderOfCluster: string;
let file: string;
/** Where npx installs it: of this test, with what this machine's npm has downloaded before. */
let cache: string;

beforeAll(async () => {
  const env = plainEnvironment();
  const packed = await freeFolder('packed');
  await run('npm', ['pack', '--pack-destination', packed], { cwd: root, env });
  // npx takes an absolute path for that of a program.
  file = `../${(await readdir(packed))[0]}`;
  folder = join(packed, 'a folder with blanks');
  folderOfCluster = join(packed, 'another folder');
  await Promise.all([mkdir(folder), mkdir(folderOfCluster)]);
  cache = await freeFolder('npx');
  const downloaded = join((await run('npm', ['config', 'get', 'cache'], { cwd: root, env })).stdout.trim(), '_cacache');
  await mkdir(downloaded, { recursive: true });
  await symlink(downloaded, join(cache, '_cacache'));
});

const environment = () => ({ npm_config_cache: cache, npm_config_prefer_offline: 'true', SCRIPTED_WORDS_PER_SECOND: '0' });

/** The output of the line of the banner that fits, pasted into a shell. */
async function paste(lines: readonly string[], fits: RegExp, cwd: string): Promise<string> {
  return (await run('bash', ['-c', lines.find((line) => fits.test(line)) ?? 'false'], { cwd, env: plainEnvironment() })).stdout;
}

it('the package is started by npx in an empty folder, answers there, and ends at Ctrl-C', async () => {
  const env = { ...fewerWasmTiers, ...environment(), ROUTER_PORT: '0', AGENT_PORT: '0' };
  const start = runProgram(inTerminal(`npx --yes ${file} start`), { cwd: folder, env });
  await eventually(() => start.output().includes('Ctrl-C stops it') || start.hasExited(), { timeoutMs: READY_TIMEOUT_MS });
  expect(start.output()).toContain('Ctrl-C stops it');
  // Waited for: the lines come one after the other.
  await eventually(() => start.output().includes('shows the same with curl'));
  const lines = start.output().split(/\r?\n/);

  const [page] = /https?:\/\/\S+/.exec(start.output()) ?? [];
  expect(page).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/chat$/);
  expect((await fetch(page ?? '', { headers: { accept: 'text/html' } })).url).toContain('/auth/login?next=%2Fchat');
  expect(await readdir(folder)).toEqual(['data']);
  const { agent_key: agentKey, router_key: routerKey } = JSON.parse(await readFile(join(folder, 'data/keys.json'), 'utf8'));
  expect(lines).toContain(agentKey);

  expect(await paste(lines, /ask "Hello"/, folder)).toMatch(/^Hello! I am Switchyard's scripted model/);
  expect(await paste(lines, /ask --agent/, folder)).toContain('2 years');
  const program = /\S+switchyard\.mjs/.exec(lines.find((line) => line.includes('ask "Hello"')) ?? '')?.[0] ?? '';
  expect((await run(process.execPath, [program, 'doctor'], { cwd: folder, env: plainEnvironment() })).stdout).toMatch(/^ok +servers: /m);

  const { port } = new URL(/http:\/\/127\.0\.0\.1:\d+\/api\/v1/.exec(start.output())?.[0] ?? '');
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${routerKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'local/universal-sentence-encoder-lite', input: ['refund', 'I want my money back', 'Paris'] }),
  });
  const { data } = (await answer.json()) as { data: { embedding: number[] }[] };
  const [refund = [], money = [], paris = []] = data.map(({ embedding }) => embedding);
  // Of length 1. Those of the scripted model, where npm has not installed the optional packages, are all far from each other.
  const likeness = (one: number[], other: number[]) => one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);
  expect(refund).toHaveLength(512);
  expect(likeness(refund, money)).toBeGreaterThan(likeness(refund, paris) + 0.2);

  start.type(CTRL_C);
  // npx starts it by a shell, and some shells report the signal.
  expect([0, 130]).toContain((await start.exited).code);
  expect(start.output()).toContain('Stopped.');
}, 400_000);

it('the package runs a cluster, whose data is in no folder of the user, and ends it at Ctrl-C', async () => {
  const cluster = runProgram(inTerminal(`npx --yes ${file} cluster`), { cwd: folderOfCluster, env: environment() });
  await eventually(() => cluster.output().includes('shows the same with curl') || cluster.hasExited(), { timeoutMs: READY_TIMEOUT_MS });
  const lines = cluster.output().split(/\r?\n/);
  const [, chatPage = ''] = /Chat page +(\S+)/.exec(cluster.output()) ?? [];
  const [keysFile = ''] = /\/\S+\/keys\.json/.exec(cluster.output()) ?? [];

  expect(await paste(lines, /ask "Hello"/, folderOfCluster)).toMatch(/^Hello! I am Switchyard's scripted model/);
  expect(await paste(lines, /ask --agent/, folderOfCluster)).toContain('2 years');
  expect((await fetch(chatPage, { headers: { accept: 'text/html' } })).url).toContain('/auth/login?next=%2Fchat');
  expect(await readdir(folderOfCluster)).toEqual([]);
  expect(existsSync(keysFile)).toBe(true);

  cluster.type(CTRL_C);
  expect([0, 130]).toContain((await cluster.exited).code);
  expect(cluster.output()).toContain('Stopped.');
  expect(existsSync(keysFile)).toBe(false);
}, 400_000);
