import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { localTrace } from '../../shared/contracts/local-trace.ts';
import { agentClient } from '../helpers/agent-client.ts';
import { pastedSections, shellBlocks } from '../helpers/documented-blocks.ts';
import { nthReady } from '../helpers/events-of-a-session.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { plainEnvironment, root } from '../helpers/run-program.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';

let standalone: Standalone;

beforeAll(async () => {
  standalone = await startStandalone({ dataDir: join(await freeFolder('a folder with blanks'), 'data') });
});

afterAll(async () => {
  await standalone.stop();
});

describe('what npm start prints', () => {
  it('lists what runs where, where the keys are, and that a scripted model answers', () => {
    const banner = standalone.output();

    for (const fact of [
      `${standalone.routerUrl}/api/v1`,
      standalone.agentUrl,
      'router_key in',
      'router_management_key in',
      'agent_key in',
      'keys.json',
      'scripted/assistant',
      'OPENAI_API_KEY',
    ]) {
      expect(banner).toContain(fact);
    }
  });

  it('has no warning for the sample agent, all of which has an effect', () => {
    const lines = standalone.output().split('\n');

    expect(lines.filter((line) => line.includes('Note:') || line.includes('No effect yet'))).toEqual([]);
  });

  it('has a line for the router that prints the text of an answer when it is pasted into a shell', async () => {
    const { stdout } = await paste(/ask -- "Hello"/);

    expect(stdout).toMatch(/^Hello! I am Switchyard's scripted model.*\n$/);
  });

  it('has a line for the agent that prints its answer when it is pasted into a shell', async () => {
    const { stdout } = await paste(/ask -- --agent/);

    expect(stdout).toMatch(/2 years.*\n$/);
  });
});

describe('a conversation without any setting', () => {
  it('sends no deltas unless asked to', async () => {
    const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
    const { id } = await agent.createSession();
    const following = agent.streamUntil(id, ({ data }) => data.status === 'ready');
    await agent.postMessage(id, 'How long is the warranty?');

    expect((await following).map(({ event }) => event)).not.toContain('delta');
  });
});

describe('the traces that npm start keeps', () => {
  it('show a turn from the request to the model, on both ports, without a word of it', async () => {
    const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
    const { id } = await agent.createSession();
    await agent.postMessage(id, 'Is a xylophone covered?');
    const log = await agent.logUntil(id, nthReady(1));
    const traceId = String(log.at(-1)?.['trace_id']);
    const shown = await eventually(
      async () => {
        const trace = localTrace.parse(
          await (await fetch(`${standalone.agentUrl}/traces/${traceId}`, { headers: { authorization: `Bearer ${standalone.keys.agentKey}` } })).json(),
        );
        return trace.spans.some(({ name }) => name.startsWith('invoke_agent')) && trace;
      },
      { timeoutMs: 60_000 },
    );
    const headers = { authorization: `Bearer ${standalone.keys.managementKey}` };
    const atRouter = await fetch(`${standalone.routerUrl}/api/v1/traces/${traceId}`, { headers });

    expect(shown.spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['publish cmd', expect.stringMatching(/^chat /), expect.stringMatching(/^upstream /)]),
    );
    expect(localTrace.parse(await atRouter.json())).toEqual(shown);
    expect(JSON.stringify(shown)).not.toContain('xylophone');
  });
});

describe('the first requests of README', () => {
  it('work when they are pasted one after the other', async () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const [, block = ''] = /^## First requests$.*?^```sh\n(export .*?)^```$/ms.exec(readme) ?? [];
    const commands = block
      .replaceAll('http://127.0.0.1:3000', standalone.routerUrl)
      .replaceAll('http://127.0.0.1:8080', standalone.agentUrl)
      .replaceAll('./data/keys.json', join(standalone.dataDir, 'keys.json'));
    expect(commands.split('\n').filter((line) => /curl/.test(line)).length).toBeGreaterThan(3);
    const { stdout } = await shell(commands);

    expect(stdout).toContain('data: [DONE]');
    expect(stdout).toMatch(/"kind":"assistant_message".*2 years/);
  });
});

describe('the commands of docs/', () => {
  it.each(pastedSections)('of $page, "$heading", work when they are pasted', async ({ page, heading, shows }) => {
    const { sessionId, ...keys } = { sessionId: (await agentClient(standalone.agentUrl, standalone.keys.agentKey).createSession()).id, ...standalone.keys };
    const commands = shellBlocks(page, heading)
      .join('\n')
      .replaceAll('http://127.0.0.1:3000', standalone.routerUrl)
      .replaceAll('http://127.0.0.1:8080', standalone.agentUrl)
      .replaceAll('./data/keys.json', join(standalone.dataDir, 'keys.json'));
    const environment = { ROUTER_API_KEY: keys.routerKey, AGENT_API_KEY: keys.agentKey, MANAGEMENT_KEY: keys.managementKey, SESSION: sessionId };
    const { stdout } = await shell(commands, { ...environment, DATA_DIR: standalone.dataDir });

    for (const shown of shows) expect(stdout).toContain(shown);
  });
});

/** Runs the matching line of the banner in the folder that it is meant for. */
function paste(fits: RegExp): Promise<{ stdout: string }> {
  const line = standalone
    .output()
    .split('\n')
    .find((each) => fits.test(each));
  if (line === undefined) throw new Error(`no line is like ${fits}`);
  return shell(line);
}

function shell(commands: string, environment: Record<string, string> = {}): Promise<{ stdout: string }> {
  return promisify(execFile)('bash', ['-e', '-c', commands], { timeout: 120_000, cwd: root, env: { ...plainEnvironment(), ...environment } });
}
