import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { runProgram } from '../helpers/run-program.ts';
import { builtProgram, fewerWasmTiers, type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { casesOfToday } from '../helpers/tier.ts';
import { copyOf, damages, forbidWriting } from './edge-disk-damage.ts';
import { type Disk, diskThatFills } from './edge-disk-disk.ts';
import { makeReadOnly, smallVolume } from './edge-disk-volume.ts';

const TIMEOUT = { timeoutMs: 60_000 };
const QUESTION = 'How long is the warranty?';
/** Size of a message of random bytes: compressible text would take little of the disk. */
const LARGE_BYTES = 60_000;
/** More than fits on the disk. */
const MAX_MESSAGES = 400;
const REFUSALS = 4;

/** A program that is expected to refuse to start: its exit code and its output. */
async function startOn(dataDir: string): Promise<{ code: number | null; said: string }> {
  const ready = join(await freeFolder('ready'), 'ready.json');
  const env = { ...fewerWasmTiers, ROUTER_PORT: '0', AGENT_PORT: '0', DATA_DIR: dataDir, SWITCHYARD_READY_FILE: ready };
  const program = runProgram(builtProgram, { env });
  await eventually(() => program.hasExited() || existsSync(ready), TIMEOUT);
  const wasReady = existsSync(ready);
  program.signal('SIGKILL');
  const { code } = await program.exited;
  return { code, said: wasReady ? 'it is ready' : program.output() };
}

/** With a session in it. Made once, since making it takes longer than all tests on its copies. */
let whole: string;
let knownSession: string;

beforeAll(async () => {
  const standalone = await startStandalone();
  const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
  const { id } = await agent.createSession();
  await agent.postMessage(id, QUESTION);
  await agent.logUntil(id, (event) => event.kind === 'assistant_message');
  // Drained: after a kill, tables are recovered from the WAL, which hides the damage.
  await standalone.stop();
  whole = standalone.dataDir;
  knownSession = id;
});

/** Permissions don't bind root; where it may not mount either, /proc is what it can't write. */
async function folderThatCanOnlyBeRead(): Promise<string> {
  const volume = await smallVolume(8);
  if (volume !== null) return makeReadOnly(volume);
  if (process.getuid?.() === 0) return '/sys/switchyard';
  const folder = await freeFolder('read-only');
  forbidWriting(folder);
  return folder;
}

/** One of each kind outside the deep tier: each starts the whole program. */
const damagesOfToday = damages.flatMap((kind) => casesOfToday(kind));

describe('a damaged data folder', () => {
  it('DESIGN 3: a data folder that is damaged, foreign or gone is refused at the start in words that name it and say what to do, and never becomes an empty store', async () => {
    const refusals: Record<string, { code: number | null; said: string }> = {};
    await inParallel(damagesOfToday, 2, async ({ name, do: damage, says }) => {
      const folder = copyOf(whole, join(await freeFolder('damaged'), 'data'));
      damage(folder);
      const { code, said } = await startOn(folder);
      const isClear = says.test(said) && said.includes(folder) && said.split('\n').filter((line) => line !== '').length === 1;
      refusals[name] = { code, said: isClear ? 'what it should' : said };
    });

    expect(refusals).toEqual(Object.fromEntries(damagesOfToday.map(({ name }) => [name, { code: 1, said: 'what it should' }])));
  });

  it('is refused when it is read-only', async () => {
    const folder = await folderThatCanOnlyBeRead();

    const { code, said } = await startOn(folder);

    expect({ code, said }).toEqual({ code: 1, said: expect.stringMatching(/data folder .* can't be used: \w+/) });
    expect(said).toContain(folder);
  });
});

interface Said {
  sessionId: string;
  accepted: string[];
  refused: { status: number; retryAfter: string | null; body: string }[];
}

/** Posts large messages until some are refused, or until the server has ended. */
async function sayUntil(end: 'refused' | 'ended', standalone: Standalone, sessionId: string): Promise<Said> {
  const said: Said = { sessionId, accepted: [], refused: [] };
  const headers = { authorization: `Bearer ${standalone.keys.agentKey}`, 'content-type': 'application/json' };
  const isOver = () => (end === 'refused' ? said.refused.length === REFUSALS : standalone.program.hasExited());
  for (let count = 0; !isOver(); count += 1) {
    if (count === MAX_MESSAGES) throw new Error(`the disk never was full; the server printed:\n${standalone.output()}`);
    const text = `number ${count} ${randomBytes(LARGE_BYTES).toString('base64')}`;
    const body = JSON.stringify({ kind: 'user_message', text });
    const signal = AbortSignal.timeout(TIMEOUT.timeoutMs);
    const response = await fetch(`${standalone.agentUrl}/sessions/${sessionId}/events`, { method: 'POST', headers, body, signal }).catch(() => null);
    if (response === null) await eventually(() => standalone.program.hasExited(), TIMEOUT);
    else if (response.ok) said.accepted.push(text);
    else said.refused.push({ status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.text() });
  }
  return said;
}

/** Every accepted message stands in the log once, and its turn is complete. */
async function expectAllThere(standalone: Standalone, { sessionId, accepted }: Said): Promise<void> {
  const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
  await eventually(async () => (await agent.readSession(sessionId)).status === 'ready', TIMEOUT);
  const log: Awaited<ReturnType<typeof agent.poll>> = [];
  for (let page = await agent.poll(sessionId, 0, '&wait_for_data=0'); page.length > 0; page = await agent.poll(sessionId, log.length, '&wait_for_data=0')) {
    log.push(...page);
  }
  expect(log.map(({ offset }) => offset)).toEqual(log.map((_, index) => index));
  const texts = log.flatMap((event) => (event.kind === 'user_message' ? [event.text] : []));
  expect(accepted.filter((text) => texts.filter((one) => one === text).length !== 1).map((text) => text.slice(0, 12))).toEqual([]);
  const countOf = (status: string) => log.filter((event) => event.kind === 'status' && event.status === status).length;
  expect(countOf('ready')).toBe(countOf('acknowledged'));
}

/** A program on a copy of the whole folder, which starts with all that was in it: none of the refusals above is of the copy. */
async function startOnDisk(): Promise<{ disk: Disk; standalone: Standalone; sessionId: string }> {
  const disk = await diskThatFills();
  copyOf(whole, disk.dataDir);
  const standalone = await startStandalone({ dataDir: disk.dataDir, env: disk.env });
  const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
  expect((await agent.poll(knownSession))[0]).toMatchObject({ offset: 0, kind: 'user_message', text: QUESTION });
  const { id: sessionId } = await agent.createSession();
  return { disk, standalone, sessionId };
}

for (const describeFull of casesOfToday([fullForTables, fullForLog])) describe('a disk that is full', describeFull);

function fullForTables(): void {
  it('DESIGN 3: what a full disk can not keep is refused with 503, the log says why, and all goes on by itself when there is room', async () => {
    const { disk, standalone, sessionId } = await startOnDisk();
    const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
    disk.fill('tables');
    const said = await sayUntil('refused', standalone, sessionId);

    for (const refusal of said.refused) expect(refusal).toMatchObject({ status: 503, retryAfter: '1', body: expect.stringContaining('not_ready') });
    await eventually(() => /no space left on device/i.test(standalone.output()), TIMEOUT);
    // Reads still work.
    expect((await agent.readSession(said.sessionId)).id).toBe(said.sessionId);

    disk.makeRoom();
    await eventually(() => agent.postMessage(said.sessionId, 'after all'), TIMEOUT);
    await expectAllThere(standalone, { ...said, accepted: [...said.accepted, 'after all'] });
    await standalone.kill();
    const again = await startStandalone({ dataDir: disk.dataDir, env: disk.env });
    await expectAllThere(again, said);
    await again.kill();
  });
}

function fullForLog(): void {
  it('DESIGN 3: a database that can not write its log ends the process in words that say why, and all that was accepted is there at the next start', async () => {
    const { disk, standalone, sessionId } = await startOnDisk();
    disk.fill('log');
    const said = await sayUntil('ended', standalone, sessionId);

    expect((await standalone.program.exited).code).toBe(1);
    expect(standalone.output()).toMatch(/Switchyard exits: the disk of .* is full: free some space/);
    if (disk.isReal) expect(await startOn(disk.dataDir)).toMatchObject({ code: 1, said: expect.stringMatching(/disk is full.*free some space/) });

    disk.makeRoom();
    const again = await startStandalone({ dataDir: disk.dataDir, env: disk.env });
    await expectAllThere(again, said);
    await again.kill();
  });
}
