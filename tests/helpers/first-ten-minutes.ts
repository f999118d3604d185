import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { createAgentClient } from '../../client/agent-client.ts';
import { localTrace } from '../../shared/contracts/local-trace.ts';
import { keepScreenshot, startBrowser } from './browser.ts';
import { documentedBlocks } from './documented-blocks.ts';
import { eventually } from './eventually.ts';
import { plainEnvironment, root } from './run-program.ts';
import type { Standalone } from './start-standalone.ts';

const HEADING = 'The first ten minutes';
const QUESTION = 'How long is the warranty?';
const TIMEOUT = { timeoutMs: 60_000 };
/** Between the outputs of the blocks. */
const CUT = '--- next block ---';

/**
 * What a new user does behind the clone, as README begins: the printed address, the login, a message, why the agent said that, a key, a request under it,
 * its limit, `doctor`. Keeps screenshots of the pages.
 */
export async function firstTenMinutes(standalone: Standalone, clone: string): Promise<void> {
  const [address] = /https?:\/\/\S+/.exec(standalone.output()) ?? [];
  expect(address).toBe(`${standalone.agentUrl}/chat`);
  const browser = await startBrowser();
  try {
    const { page, complaints } = await browser.open(standalone.agentUrl);
    const sessionId = await talk(page, address ?? '', standalone.keys.agentKey);
    const traceId = await readDecision(page, standalone, sessionId);
    await readTrace(standalone, traceId);
    expect(complaints).toEqual([]);
  } finally {
    await browser.close();
  }
  const { trace, request, doctor, refused } = await pasteBlocks(standalone, clone);
  expect(trace).toContain('"name":"POST /sessions/:session_id/events"');
  expect(request).toMatch(/^Hello! I am Switchyard's scripted model/m);
  expect(doctor).toMatch(/^ok +servers: /m);
  expect(doctor).not.toContain('failed');
  expect(refused).toContain("type: 'payment_required'");
  expect(refused).toMatch(/status: 402/);
  expect(refused).not.toContain('scripted model');
}

/** @returns the id of the session */
async function talk(page: Page, address: string, key: string): Promise<string> {
  await page.goto(address);
  await keepScreenshot(page, 'stranger-1-login');
  await page.getByLabel('Key of the agent').fill(key);
  await page.keyboard.press('Enter');
  await page.getByLabel('Message', { exact: true }).fill(QUESTION);
  await page.keyboard.press('Enter');
  await page.locator('.message.agent[data-offset]').getByText('2 years').waitFor();
  await page.locator('[role=status][data-status=ready]').waitFor();
  await keepScreenshot(page, 'stranger-2-chat');
  return new URL(page.url()).searchParams.get('session') ?? '';
}

/** The same on the page and over HTTP. @returns the id of its trace */
async function readDecision(page: Page, { agentUrl, keys }: Standalone, sessionId: string): Promise<string> {
  const client = createAgentClient({ baseUrl: agentUrl, apiKey: keys.agentKey });
  const { items } = await client.request('GET', '/sessions/{session_id}/turns', { path: { session_id: sessionId } });
  const [turn] = items.filter(({ outcome }) => outcome === 'replied');
  if (turn === undefined) throw new Error(`no turn of ${sessionId} has replied: ${JSON.stringify(items)}`);
  const { trace_id: traceId } = turn;
  const decided = await client.request('GET', '/sessions/{session_id}/turns/{trace_id}', { path: { session_id: sessionId, trace_id: traceId } });
  expect(decided.calls.length).toBeGreaterThan(0);

  await page.goto('/console');
  await page.getByRole('link', { name: QUESTION }).click();
  await page.getByLabel('Turns of the session').getByText('replied').first().click();
  await page.locator('.waterfall li').first().waitFor();
  await keepScreenshot(page, 'stranger-3-decision');
  return traceId;
}

async function readTrace({ agentUrl, keys }: Standalone, traceId: string): Promise<void> {
  const read = async () =>
    localTrace.parse(await (await fetch(`${agentUrl}/traces/${traceId}`, { headers: { authorization: `Bearer ${keys.agentKey}` } })).json());
  await eventually(async () => (await read()).spans.some(({ name }) => name.startsWith('invoke_agent')), TIMEOUT);
}

/** Runs the blocks in one shell, in their order, and the request again behind the limit that they set. */
async function pasteBlocks(standalone: Standalone, clone: string) {
  const blocks = documentedBlocks('README.md').filter(({ heading }) => heading === HEADING);
  const [start, makeKey, request, limit] = blocks.map(({ text }) =>
    text.replaceAll('http://127.0.0.1:3000', standalone.routerUrl).replaceAll('http://127.0.0.1:8080', standalone.agentUrl),
  );
  expect(blocks.map(({ language }) => language)).toEqual(['sh', 'sh', 'js', 'sh']);
  expect(start).toMatch(/^npm start /);
  // From the folder that has the client.
  const send = `(cd "$CLIENTS" && node --input-type=module <<'END'\n${request}END\n)`;
  const script = [makeKey, send, limit, `! ${send} 2>&1`].join(`\necho '${CUT}'\n`);
  const env = { ...plainEnvironment(), CLIENTS: join(root, 'tests') };
  const { stdout } = await promisify(execFile)('bash', ['-e', '-c', script], { cwd: clone, env, timeout: 120_000 });
  const [trace = '', answered = '', doctor = '', refused = ''] = stdout.split(CUT);
  return { trace, request: answered, doctor, refused };
}
