import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { agentClient } from '../helpers/agent-client.ts';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { nthReady, ONE_TURN, wordsOf } from '../helpers/events-of-a-session.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { openStream } from '../helpers/open-stream.ts';
import { root, runProgram } from '../helpers/run-program.ts';
import { builtProgram, type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { casesOfToday } from '../helpers/tier.ts';

const CLEAN = { code: 0, signal: null };
/** A few seconds of stream: long enough to be in flight when the signal arrives, short enough to be waited for. */
const SHORT_STREAM = '!slow 100 Hello!';
/** More than an hour of stream: a process that waits for its end has not stopped at once. */
const ENDLESS_STREAM = '!slow 1000 !repeat 200 Hello!';

// Each case waits for a process to start, so what one start can show is shown by one.

describe('stopping', () => {
  it.each(
    casesOfToday([
      ['SIGTERM', 143],
      ['SIGINT', 130],
    ] as const),
  )('does not wait for a stream at a second %s, a second later', async (signal, code) => {
    const standalone = await startStandalone();
    const { text } = await openStream(standalone, ENDLESS_STREAM);
    standalone.program.signal(signal);
    await eventually(() => standalone.output().includes(`${signal}: finishing`));
    await delay(1_100); // a signal within a second counts as the same request, and that second is what is tested
    expect(standalone.program.hasExited()).toBe(false);
    standalone.program.signal(signal);

    expect(await standalone.program.exited).toEqual({ code, signal: null });
    await expect(text).rejects.toThrow();
  });
});

describe('npm start in a terminal', () => {
  let first: Standalone;
  let later: Standalone;
  let stored: string;

  it('lets a stream end at Ctrl-C, and exits with 0', async () => {
    first = await startStandalone({ command: inTerminal('npm start'), isFirstStart: true });
    stored = readFileSync(join(first.dataDir, 'keys.json'), 'utf8');
    await eventually(() => first.output().includes('Ctrl-C stops it'));
    const { text } = await openStream(first, SHORT_STREAM);
    first.program.type(CTRL_C);

    expect(await text).toContain('[DONE]');
    expect(await first.program.exited).toEqual(CLEAN);
    expect(first.output()).toContain('Stopped.');
  });

  it('does not wait at a second Ctrl-C, a second later', async () => {
    later = await startStandalone({ dataDir: first.dataDir, command: inTerminal('npm start'), env: { LOG_LEVEL: 'trace' } });
    await eventually(() => later.output().includes('Ctrl-C stops it'));
    await (await openStream(later, 'Hello!')).text;
    await openStream(later, ENDLESS_STREAM);
    later.program.type(CTRL_C);
    await eventually(() => later.output().includes('SIGINT: finishing'));
    await delay(1_100);
    expect(later.program.hasExited()).toBe(false);
    later.program.type(CTRL_C);

    expect((await later.program.exited).code).toBe(130);
  });

  it('says of the data folder that it is new, without earlier callbacks, at its first start alone', () => {
    expect(first.output()).toContain('(new: sessions and callbacks');
    expect(later.output()).toContain(first.dataDir);
    expect(later.output()).not.toContain('(new:');
  });

  it('DESIGN 10: generated keys are for their owner alone, and shown by the start that makes them alone', () => {
    const path = join(first.dataDir, 'keys.json');
    const { router_key: routerKey, agent_key: agentKey, house_secret: houseSecret } = JSON.parse(stored);

    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, 'utf8')).toBe(stored);
    for (const key of [routerKey, agentKey, houseSecret]) expect(key).toMatch(/\w{32}/);
    expect(new Set([routerKey, agentKey, houseSecret]).size).toBe(3);
    for (const key of [routerKey, agentKey]) {
      expect(first.output()).toContain(key);
      expect(later.output()).not.toContain(key);
    }
    for (const { output } of [first, later]) {
      expect(output()).not.toContain(houseSecret);
      expect(output()).toContain('router_key in ');
    }
  });
});

describe('stopping while a callback waits for its retry', () => {
  let receiver: CallbackReceiver;
  let next: Standalone;

  beforeAll(async () => {
    receiver = await openCallbackReceiver();
  });

  afterAll(async () => {
    await receiver.close();
  });

  /** Begins a run whose callback is refused once. */
  async function refusedCallback(standalone: Standalone) {
    const callback = receiver.address(503);
    const headers = { authorization: `Bearer ${standalone.keys.agentKey}`, 'content-type': 'application/json' };
    const input = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The pump is loud.' };
    const body = JSON.stringify({ input, callback_url: callback.url });
    const { status } = await fetch(`${standalone.agentUrl}/routines/triage-warranty-claim/trigger`, { method: 'POST', headers, body });
    expect(status).toBe(202);
    await eventually(() => callback.received.length > 0, { timeoutMs: 30_000 });
    return callback;
  }

  it('prints how many are left and for which hosts when the drain is over, and the next start posts them', async () => {
    const env = { OUTBOUND_ALLOW_HOSTS: receiver.host, LOG_LEVEL: 'info' };
    const standalone = await startStandalone({ env: { ...env, SHUTDOWN_DRAIN_TIMEOUT_SECONDS: '1' } });
    const callback = await refusedCallback(standalone);
    expect(await standalone.stop(), standalone.output()).toEqual(CLEAN);

    const line = standalone
      .output()
      .split('\n')
      .find((each) => each.includes('callbacks are pending'));
    expect(line, standalone.output()).toBeDefined();
    expect(JSON.parse(String(line))).toMatchObject({ level: 'warn', callbacks: 1, receivers: [receiver.host] });
    expect(line).not.toContain(new URL(callback.url).pathname);
    const posted = callback.received.length;
    callback.answer(204);
    next = await startStandalone({ dataDir: standalone.dataDir, env });
    await eventually(() => callback.received.length > posted, { timeoutMs: 30_000 });
  });

  it('retries it before npm start ends, and exits with 0', async () => {
    const callback = await refusedCallback(next);
    // The receiver accepts only what is posted from here on.
    const stopped = next.stop();
    callback.answer(204);
    expect(await stopped, next.output()).toEqual(CLEAN);

    const attempts = callback.received.map(({ headers }) => headers['x-switchyard-attempt']);
    expect(attempts).toEqual(attempts.map((_, index) => String(index + 1)));
    expect(attempts.length, next.output()).toBeGreaterThan(1);
    expect(next.output()).not.toContain('callbacks are pending');
  });
});

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
    let told: Standalone;

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
      told = await startStandalone({ command: inTerminal(builtProgram.map((part) => `'${part}'`).join(' ')), env: { ...quiet, LOG_LEVEL: 'TRACE' } });
      expect(await served(told)).toBe(true);
      told.program.type(CTRL_C);
      await told.program.exited;

      expect(standalone.output()).not.toContain('"level":"info"');
      // In a terminal its lines are for people.
      expect(told.output()).toMatch(/ INFO +standalone /);
    });

    it('DESIGN 10: a key that the operator gave is never printed, and none is made in its place', () => {
      for (const name of ['AGENT_API_KEY', 'ROUTER_API_KEY'] as const) {
        expect(told.output()).not.toContain(given[name]);
        expect(told.output()).toContain(`$${name}`);
      }
      expect(Object.keys(JSON.parse(readFileSync(join(told.dataDir, 'keys.json'), 'utf8')))).toEqual(['house_secret']);
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

const CTRL_C = '\x03';
const LOCK_NAME = 'switchyard.lock';

/** A command in its own pseudo-terminal, with this program's input as its keyboard. */
function inTerminal(command: string): string[] {
  // `exec`: a shell in between would exit at Ctrl-C by itself, with its own exit code.
  return ['script', '--quiet', '--return', '--command', `exec ${command}`, '/dev/null'];
}

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
