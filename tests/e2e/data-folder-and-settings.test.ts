import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Database } from '../../shared/storage/database.ts';
import { openPglite } from '../../shared/storage/pglite/open-pglite.ts';
import { agentClient } from '../helpers/agent-client.ts';
import { nthReady, ONE_TURN, wordsOf } from '../helpers/events-of-a-session.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { CTRL_C, inTerminal } from '../helpers/in-terminal.ts';
import { openStream } from '../helpers/open-stream.ts';
import { root, runProgram } from '../helpers/run-program.ts';
import { builtProgram, type Standalone, startStandalone } from '../helpers/start-standalone.ts';

const CLEAN = { code: 0, signal: null };
/** A few seconds of stream: long enough to be in flight when the signal arrives, short enough to be waited for. */
const SHORT_STREAM = '!slow 100 Hello!';
const LOCK_NAME = 'switchyard.lock';

describe('the data folder', () => {
  let first: Standalone;
  let second: Standalone;

  beforeAll(async () => {
    first = await startStandalone({ env: { LOG_LEVEL: 'trace' } });
  });

  it('DESIGN 3: a data folder in use is refused to a second start, which names the process that has it', async () => {
    const refused = startingOn({ DATA_DIR: first.dataDir });

    expect((await refused.exited).code).toBe(1);
    expect(refused.output()).toContain(`process ${first.pid}`);
    expect(refused.output()).toContain(first.dataDir);
    const { text } = await openStream(first, 'Hello!');
    expect(await text).toContain('[DONE]');
  });

  it('loses nothing of the log by a kill -9 in the middle of a turn, and goes on', async () => {
    const client = agentClient(first.agentUrl, first.keys.agentKey);
    const { id } = await client.createSession();
    await client.postMessage(id, 'How long is the warranty?');
    await client.logUntil(id, nthReady(1));
    await client.postMessage(id, '!slow 100 How do I descale the machine?');
    const before = await client.logUntil(id, (event) => event.offset === 7);
    await first.kill();
    expect(existsSync(join(first.dataDir, LOCK_NAME))).toBe(true);

    second = await startStandalone({ dataDir: first.dataDir });
    const later = agentClient(second.agentUrl, second.keys.agentKey);
    const log = await later.logUntil(id, nthReady(2));
    expect(log.slice(0, before.length)).toEqual(before);
    await later.postMessage(id, 'Thank you!');
    const whole = await later.logUntil(id, nthReady(3));

    expect(whole.map((event) => event.offset)).toEqual(whole.map((_, index) => index));
    expect(wordsOf(whole)).toBe(Array(3).fill(ONE_TURN).join(' '));
  });

  it('can be used again after kill -9, and holds the same keys', async () => {
    expect(second.keys).toEqual(first.keys);
    const { text } = await openStream(second, 'Hello!');
    expect(await text).toContain('[DONE]');
  });

  it('DESIGN 10: generated keys are shown to a terminal alone', () => {
    for (const key of Object.values(first.keys)) expect(first.output()).not.toContain(key);
    expect(first.output()).toContain(`router_key in ${join(first.dataDir, 'keys.json')}`);
  });

  it('is free when its lock names a process that is another program by now; npm start lets a stream end at SIGTERM, and exits with 0', async () => {
    await second.kill();
    const lock = join(first.dataDir, LOCK_NAME);
    const left = JSON.parse(readFileSync(lock, 'utf8'));
    expect(left.pid).toBe(second.pid);
    writeFileSync(lock, JSON.stringify({ ...left, pid: process.pid }));
    const third = await startStandalone({ dataDir: first.dataDir, command: ['npm', 'start'] });
    const { text } = await openStream(third, SHORT_STREAM);
    const stopped = third.stop('SIGTERM');

    expect(await text).toContain('[DONE]');
    expect(await stopped).toEqual(CLEAN);
    expect(third.output()).toContain('Stopped.');
  });

  it('has dead letters, which the command line lists and replays in the folder above while nothing runs on it', async () => {
    const body = JSON.stringify({ v: 1, type: 'message.post', sessionId: 'ses_none' });
    await inDatabase((database) =>
      database.query(`insert into dead_letters (id, source, p, reason, body, created_at) values ('cmd-1', 'command', 3, 'a test', $1, now())`, [body]),
    );
    const operate = async (...args: string[]) => {
      const program = runProgram([process.execPath, join(root, 'dist/services/operator/main.js'), 'dead-letters', ...args], { cwd: dirname(first.dataDir) });
      expect(await program.exited, program.output()).toEqual(CLEAN);
      return program.output();
    };

    expect(await operate('list')).toContain('cmd-1');
    expect(await operate('replay', 'cmd-1')).toContain('cmd-1 is appended to the command log again');
    expect(await operate('list')).toContain('There are no dead letters.');
    const stored = await inDatabase((database) => database.query<{ body: string }>(`select body from bus_log where p = 3 and message_id like 'replay-%'`));
    // With the tag of the secret in keys.json.
    expect(stored.rows.map((row) => JSON.parse(row.body))).toEqual([expect.objectContaining({ sessionId: 'ses_none', tag: expect.any(String) })]);
  });

  async function inDatabase<Result>(use: (database: Database) => Promise<Result>): Promise<Result> {
    const database = await openPglite({ folder: join(first.dataDir, 'database') });
    try {
      return await use(database);
    } finally {
      await database.close();
    }
  }
});

describe('a manifest of one’s own', () => {
  const sample = 'examples/acme-support';

  async function ownManifest(edit: (text: string) => string): Promise<Record<string, string>> {
    const path = join(await freeFolder(), 'manifest.yaml');
    writeFileSync(path, edit(readFileSync(join(root, sample, 'manifest.yaml'), 'utf8')));
    return { MANIFEST: path, DOCUMENTS: join(root, sample, 'documents') };
  }

  it('ends the start with the names of the missing variables: none has a made-up default', async () => {
    const program = runProgram([process.execPath, 'dist/services/standalone/main.js'], {
      env: { DATA_DIR: join(await freeFolder(), 'data'), ROUTER_PORT: '0', AGENT_PORT: '0', ...(await ownManifest((text) => text)) },
    });

    expect(await program.exited).toEqual({ code: 1, signal: null });
    for (const name of ['AGENT_API_KEY', 'PLATFORM_PUBLIC_KEY', 'PLATFORM_SECRET_KEY', 'ROUTER_API_KEY']) {
      expect(program.output().replaceAll(/\s+/g, ' ')).toContain(`the environment variable ${name} is not set`);
    }
  });

  describe('with the keys of its operator', () => {
    const given = {
      AGENT_API_KEY: 'sk-agent-of-the-operator',
      ROUTER_API_KEY: 'sk-router-of-the-operator',
      PLATFORM_PUBLIC_KEY: 'public',
      PLATFORM_SECRET_KEY: 'secret',
    };
    let quiet: Record<string, string>;
    let inTerminalRun: Standalone;

    beforeAll(async () => {
      quiet = { ...(await ownManifest((text) => text.replace('log_level: INFO', 'log_level: ERROR'))), ...given };
    });

    async function served(standalone: Standalone): Promise<boolean> {
      await (await openStream(standalone, 'Hello!')).text;
      const response = await fetch(`${standalone.routerUrl}/api/v1/models`, { headers: { authorization: `Bearer ${given.ROUTER_API_KEY}` } });
      return response.ok;
    }

    it('sets the level of the log, unless LOG_LEVEL does', async () => {
      const standalone = await startStandalone({ env: quiet });
      expect(await served(standalone)).toBe(true);
      await standalone.stop();
      inTerminalRun = await startStandalone({ command: inTerminal(builtProgram.map((part) => `'${part}'`).join(' ')), env: { ...quiet, LOG_LEVEL: 'TRACE' } });
      expect(await served(inTerminalRun)).toBe(true);
      inTerminalRun.program.type(CTRL_C);
      await inTerminalRun.program.exited;

      expect(standalone.output()).not.toContain('"level":"info"');
      // In a terminal its lines are for people.
      expect(inTerminalRun.output()).toMatch(/ INFO +standalone /);
    });

    it('DESIGN 10: a key that the operator gave is never printed, and none is made in its place', () => {
      for (const name of ['AGENT_API_KEY', 'ROUTER_API_KEY'] as const) {
        expect(inTerminalRun.output()).not.toContain(given[name]);
        expect(inTerminalRun.output()).toContain(`$${name}`);
      }
      expect(Object.keys(JSON.parse(readFileSync(join(inTerminalRun.dataDir, 'keys.json'), 'utf8')))).toEqual(['router_management_key', 'house_secret']);
    });
  });
});

describe('a port that is taken', () => {
  it.each(['ROUTER_PORT', 'AGENT_PORT'])('is named, with %s, the setting that moves it', async (setting) => {
    const port = await takenPort();
    const start = startingOn({ DATA_DIR: await freeFolder('data'), [setting]: String(port) });

    expect((await start.exited).code).toBe(1);
    expect(start.output()).toContain(String(port));
    expect(start.output()).toContain(setting);
  });
});

/** A start that is expected to fail. */
function startingOn(env: Record<string, string>) {
  return runProgram([process.execPath, 'dist/services/standalone/main.js'], { env: { ROUTER_PORT: '0', AGENT_PORT: '0', ...env } });
}

/** A port that another process listens on for the time of the test. */
async function takenPort(): Promise<number> {
  const server: Server = createServer();
  onTestFinished(() => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
  return address.port;
}
