import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/servers/test-tcp.mjs';
import { turnRecord } from '../../shared/contracts/agent/turn-record.ts';
import { localTrace } from '../../shared/contracts/local-trace.ts';
import { agentClient } from '../helpers/agent-client.ts';
import { blocksIn, pastedSections, shellBlocks } from '../helpers/documented-blocks.ts';
import { nthReady } from '../helpers/events-of-a-session.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { plainEnvironment, root, runProgram } from '../helpers/run-program.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';

const SAMPLE_AGENT = { page: 'examples/README.md', heading: 'acme-support: an agent' };
/** In the place of that of examples/README.md. */
let receiverPort: number;
let standalone: Standalone;

beforeAll(async () => {
  receiverPort = await freePort();
  const [, start = ''] = shellBlocks(SAMPLE_AGENT.page, SAMPLE_AGENT.heading);
  const [, hosts = ''] = /^OUTBOUND_ALLOW_HOSTS=(\S+) npm start/.exec(start) ?? [];
  standalone = await startStandalone({
    dataDir: join(await freeFolder('a folder with blanks'), 'data'),
    env: { OUTBOUND_ALLOW_HOSTS: hosts.replace('9000', String(receiverPort)) },
  });
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

it('there is no management listener without a port for it', () => {
  expect(standalone.managementUrl).toBeUndefined();
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

it('DESIGN 14: npm start answers for the leak rather than the refund, and the record of the turn says why and what each call has cost', async () => {
  const agent = agentClient(standalone.agentUrl, standalone.keys.agentKey);
  const get = async (path: string) => {
    const response = await fetch(`${standalone.agentUrl}${path}`, { headers: { authorization: `Bearer ${standalone.keys.agentKey}` } });
    return { status: response.status, body: await response.json() };
  };
  const { id } = await agent.createSession({ allow_greeting: false });
  await agent.postMessage(id, 'My machine leaks and I want a refund');
  const log = await agent.logUntil(id, (event) => event.kind === 'status' && event.status === 'ready');
  const traceId = log.find((event) => event.kind === 'status' && event.status === 'acknowledged')?.trace_id ?? '';
  // Usage records are written shortly after their calls.
  const record = await eventually(
    async () => {
      const read = turnRecord.parse((await get(`/sessions/${id}/turns/${traceId}`)).body);
      return read.calls.filter(({ kind }) => kind !== 'applied').every(({ model }) => model !== null) && read;
    },
    { timeoutMs: 60_000 },
  );

  expect(record).toMatchObject({ trace_id: traceId, outcome: 'replied', error: null });
  expect(record.policies.map((policy) => policy.id)).toContain('leaking-machine');
  expect(record.steps).toEqual([]);
  expect(record.evidence).toContainEqual(expect.objectContaining({ id: 'leaking-machine', applies: true }));
  expect(record.resolutions).toContainEqual(expect.objectContaining({ outcome: 'deprioritized', counterparts: ['policy:leaking-machine'] }));
  expect(record.calls.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['match', 'compose']));
  for (const { prompt_tokens: tokens, ms } of record.calls.filter(({ kind }) => kind !== 'applied'))
    expect([tokens, ms]).toEqual([expect.any(Number), expect.any(Number)]);

  const list = (await get(`/sessions/${id}/turns`)).body as { items: { trace_id: string }[] };
  expect(list.items.map(({ trace_id }) => trace_id)).toEqual([traceId]);
  expect((await get(`/sessions/${id}/turns/${'0'.repeat(32)}`)).status).toBe(404);
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

describe('the sample agent of examples/', () => {
  it('runs its routine by the lines of the page, with a callback to the receiver that stands there', async () => {
    const [, , receive = '', trigger = ''] = shellBlocks(SAMPLE_AGENT.page, SAMPLE_AGENT.heading).map(atThisServer);
    const receiver = runProgram(['bash', '-e', '-c', receive]);
    await eventually(() => receiver.output().includes('listening on'), { timeoutMs: 60_000 });
    const { stdout } = await shell(trigger);
    const [runId = 'none'] = /run_\w+/.exec(stdout) ?? [];

    expect(stdout).toContain('"status":"accepted"');
    await eventually(() => receiver.output().includes(runId), { timeoutMs: 60_000 });
  });
});

describe('the programs of the pages', () => {
  it('README: print what the router streams to the client of OpenAI', async () => {
    const [program = ''] = blocksIn('README.md', 'First requests', 'js');
    const { stdout } = await execute(program, 'tests');

    expect(stdout).toMatch(/^Hello! I am Switchyard's scripted model/);
  });

  it('client/: print the reply of the agent', async () => {
    const [program = ''] = blocksIn('client/README.md', "client: the agent server's client for TypeScript", 'ts');
    const { stdout } = await execute(program.replace('http://localhost:8080', standalone.agentUrl), '.');

    expect(stdout).toMatch(/\w+ \w+/);
  });
});

describe('the first requests of README', () => {
  it('work when they are pasted one after the other', async () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    const [, block = ''] = /^## First requests$.*?^```sh\n(export .*?)^```$/ms.exec(readme) ?? [];
    const commands = atThisServer(block);
    expect(commands.split('\n').filter((line) => /curl/.test(line)).length).toBeGreaterThan(3);
    const { stdout } = await shell(commands);

    expect(stdout).toContain('data: [DONE]');
    expect(stdout).toMatch(/"kind":"assistant_message".*2 years/);
  });
});

describe('the commands of docs/', () => {
  it.each(pastedSections)('of $page, "$heading", work when they are pasted', async ({ page, heading, shows }) => {
    const commands = atThisServer(shellBlocks(page, heading).join('\n'));
    const { stdout } = await shell(commands, { ...keyVariables(), ...(await idsIn(commands)), OLD_KEY: 'sk-of-another-proxy', DATA_DIR: standalone.dataDir });

    for (const shown of shows) expect(stdout).toContain(shown);
  });
});

/** Commands of a page, for the addresses of this server. */
function atThisServer(commands: string): string {
  return commands
    .replaceAll('http://127.0.0.1:3000', standalone.routerUrl)
    .replaceAll('http://127.0.0.1:8080', standalone.agentUrl)
    .replaceAll('127.0.0.1:9000', `127.0.0.1:${receiverPort}`)
    .replaceAll('PORT=9000', `PORT=${receiverPort}`)
    .replaceAll('./data/keys.json', join(standalone.dataDir, 'keys.json'));
}

function keyVariables(): Record<string, string> {
  const { routerKey, agentKey, managementKey } = standalone.keys;
  return { ROUTER_API_KEY: routerKey, AGENT_API_KEY: agentKey, MANAGEMENT_KEY: managementKey };
}

/** Ids that a page takes as given: of a session, and of an ended call of the router. */
async function idsIn(commands: string): Promise<Record<string, string>> {
  const ids: Record<string, string> = {};
  if (commands.includes('$SESSION')) ids['SESSION'] = (await agentClient(standalone.agentUrl, standalone.keys.agentKey).createSession()).id;
  if (commands.includes('$GENERATION') && !commands.includes('GENERATION=')) {
    const response = await fetch(`${standalone.routerUrl}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${standalone.keys.routerKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }] }),
    });
    await response.text();
    ids['GENERATION'] = response.headers.get('x-generation-id') ?? '';
  }
  return ids;
}

/** Runs a program of a page as a module of a folder. */
function execute(program: string, folder: string): Promise<{ stdout: string }> {
  return promisify(execFile)(process.execPath, ['--input-type=module', '--eval', atThisServer(program)], {
    timeout: 120_000,
    cwd: join(root, folder),
    env: { ...plainEnvironment(), ...keyVariables() },
  });
}

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
