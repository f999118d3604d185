import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AgentClient, agentClient } from '../helpers/agent-client.ts';
import { shellBlocks } from '../helpers/documented-blocks.ts';
import { eventually } from '../helpers/eventually.ts';
import { runProgram } from '../helpers/run-program.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { openShopTools, type ShopTools, toolAgentFiles } from '../helpers/tool-agent.ts';

const AGENT_API_KEY = 'sk-agent-of-the-shop';
const operator = [process.execPath, 'dist/services/operator/main.js'];

let tools: ShopTools;
let standalone: Standalone;
let agent: AgentClient;
let manifest: string;

beforeAll(async () => {
  tools = await openShopTools();
  const keys = { AGENT_API_KEY, ROUTER_API_KEY: 'sk-router-of-the-shop', PLATFORM_PUBLIC_KEY: 'pk', PLATFORM_SECRET_KEY: 'sk' };
  const files = await toolAgentFiles(tools.port);
  manifest = files.MANIFEST;
  standalone = await startStandalone({ env: { ...files, ...keys } });
  agent = agentClient(standalone.agentUrl, AGENT_API_KEY);
}, 180_000);
afterAll(async () => {
  await standalone?.stop();
  await tools?.close();
});

/** Of the last turn. */
async function say(id: string, text: string): Promise<string[]> {
  const { offset } = await agent.postMessage(id, text);
  const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready' && event.offset > offset);
  return log.filter((event) => event.offset > offset).map(({ kind }) => kind);
}

async function replay(...args: string[]) {
  const program = runProgram([...operator, 'replay', ...args], { env: { DATA_DIR: standalone.dataDir } });
  const { code } = await program.exited;
  return { code, output: program.output() };
}

describe('the replay of a session that npm start has had', () => {
  it('decides alike with the same documents, without a model and without a call of a tool; in another session nothing is found', async () => {
    const { id } = await agent.createSession({ allow_greeting: false });
    // The tool lists are read in the background: a turn before them has no tools.
    await eventually(async () => (await say(id, 'What is the state of order A-17?')).includes('tool'), { timeoutMs: 60_000 });
    await say(id, 'I want a refund, please');
    await say(id, 'I complain: the machine A-18 is broken');
    await say(id, 'Thank you');
    await standalone.stop();
    const called = tools.stated.length;

    const { code, output } = await replay(id, '--manifest', manifest, '--json');
    expect(code, output).toBe(0);
    const report = JSON.parse(output.slice(output.indexOf('{'))) as {
      differing: number;
      asked: object;
      recorded_answers: { tool_calls: number };
      turns: object[];
    };
    expect(report.differing, output).toBe(0);
    expect(report.asked).toEqual({ model_calls: 0, answered_by: null });
    expect(report.recorded_answers.tool_calls).toBeGreaterThanOrEqual(2);
    expect(report.turns.length).toBeGreaterThanOrEqual(4);
    expect(tools.stated.length).toBe(called);

    const documented = shellBlocks('docs/scenarios.md', 'Replays').join('\n');
    const pasted = documented.replace('examples/acme-support/manifest.yaml', `'${manifest}'`).replace('DATA_DIR=data', `DATA_DIR='${standalone.dataDir}'`);
    const byThePage = runProgram(['bash', '-e', '-c', pasted], { env: { SESSION: id } });
    expect(await byThePage.exited, byThePage.output()).toEqual({ code: 0, signal: null });
    expect(byThePage.output()).toMatch(/^alike +offset \d+/m);

    const unknown = await replay('ses_unknown', '--manifest', manifest);
    expect(unknown.code).toBe(1);
    expect(unknown.output).toContain('there is no session "ses_unknown"');
    const beyond = await replay(id, '--manifest', manifest, '--from', '100000');
    expect(beyond.code).toBe(1);
    expect(beyond.output).toContain('no turn begins at offset 100000');
    const missing = await replay(id, '--manifest', join(manifest, '..', 'other.yaml'));
    expect(missing.code).toBe(1);
    expect(missing.output).toContain('the file does not exist');
  }, 240_000);
});
