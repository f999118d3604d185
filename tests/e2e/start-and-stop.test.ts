import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { openStream } from '../helpers/open-stream.ts';
import { root, runProgram } from '../helpers/run-program.ts';
import { startStandalone } from '../helpers/start-standalone.ts';

const CLEAN = { code: 0, signal: null };
/** A few seconds of stream: long enough to be in flight when the signal arrives, short enough to be waited for. */
const SHORT_STREAM = '!slow 100 Hello!';
/** More than an hour of stream: a process that waits for its end has not stopped at once. */
const ENDLESS_STREAM = '!slow 1000 !repeat 200 Hello!';

describe('stopping', () => {
  it('lets a stream end when npm gets a SIGTERM, and exits with 0', async () => {
    const standalone = await startStandalone({ command: ['npm', 'start'], isFirstStart: true });
    const { text } = await openStream(standalone, SHORT_STREAM);
    const stopped = standalone.stop('SIGTERM');

    expect(await text).toContain('[DONE]');
    expect(await stopped).toEqual(CLEAN);
    expect(standalone.output()).toContain('Stopped.');
  });

  it('lets a stream end at Ctrl-C in a terminal, and exits with 0', async () => {
    const standalone = await startStandalone({ command: inTerminal('npm start') });
    const { text } = await openStream(standalone, SHORT_STREAM);
    standalone.program.type(CTRL_C);

    expect(await text).toContain('[DONE]');
    expect(await standalone.program.exited).toEqual(CLEAN);
    expect(standalone.output()).toContain('Stopped.');
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('does not wait for a stream at a second %s, a second later', async (signal, code) => {
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

  it('does not wait at a second Ctrl-C in a terminal, a second later', async () => {
    const standalone = await startStandalone({ command: inTerminal('npm start') });
    await openStream(standalone, ENDLESS_STREAM);
    standalone.program.type(CTRL_C);
    await eventually(() => standalone.output().includes('SIGINT: finishing'));
    await delay(1_100);
    expect(standalone.program.hasExited()).toBe(false);
    standalone.program.type(CTRL_C);

    expect((await standalone.program.exited).code).toBe(130);
  });
});

describe('stopping while a callback waits for its retry', () => {
  /** A started program with a run whose callback was refused once. */
  async function withRefusedCallback(env: Record<string, string>) {
    const receiver = await openCallbackReceiver();
    onTestFinished(() => receiver.close());
    const callback = receiver.address(503);
    const standalone = await startStandalone({ env: { OUTBOUND_ALLOW_HOSTS: receiver.host, LOG_LEVEL: 'info', ...env } });
    const headers = { authorization: `Bearer ${standalone.keys.agentKey}`, 'content-type': 'application/json' };
    const input = { claim_id: 'C-1', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'The pump is loud.' };
    const body = JSON.stringify({ input, callback_url: callback.url });
    const { status } = await fetch(`${standalone.agentUrl}/routines/triage-warranty-claim/trigger`, { method: 'POST', headers, body });
    expect(status).toBe(202);
    await eventually(() => callback.received.length > 0, { timeoutMs: 30_000 });
    return { standalone, callback, receiver };
  }

  it('retries it before npm start ends, and exits with 0', async () => {
    const { standalone, callback } = await withRefusedCallback({});
    // The receiver accepts only what is posted from here on.
    const stopped = standalone.stop();
    callback.answer(204);
    expect(await stopped, standalone.output()).toEqual(CLEAN);

    const attempts = callback.received.map(({ headers }) => headers['x-switchyard-attempt']);
    expect(attempts).toEqual(attempts.map((_, index) => String(index + 1)));
    expect(attempts.length, standalone.output()).toBeGreaterThan(1);
    expect(standalone.output()).not.toContain('callbacks are left');
  });

  it('prints how many are left and for which hosts when the drain is over, and the next start posts them', async () => {
    const { standalone, callback, receiver } = await withRefusedCallback({ SHUTDOWN_DRAIN_TIMEOUT_SECONDS: '1' });
    expect(await standalone.stop(), standalone.output()).toEqual(CLEAN);

    const line = standalone
      .output()
      .split('\n')
      .find((each) => each.includes('callbacks are left'));
    expect(line, standalone.output()).toBeDefined();
    expect(JSON.parse(String(line))).toMatchObject({ level: 'warn', callbacks: 1, receivers: [receiver.host] });
    expect(line).not.toContain(new URL(callback.url).pathname);
    const posted = callback.received.length;
    callback.answer(204);
    const next = await startStandalone({ dataDir: standalone.dataDir, env: { OUTBOUND_ALLOW_HOSTS: receiver.host } });
    await eventually(() => callback.received.length > posted, { timeoutMs: 30_000 });
    expect(await next.stop()).toEqual(CLEAN);
  });
});

describe('the data folder', () => {
  it('DESIGN 3: a data folder in use is refused to a second start, which names the process that has it', async () => {
    const first = await startStandalone();
    const second = startingOn({ DATA_DIR: first.dataDir });

    expect((await second.exited).code).toBe(1);
    expect(second.output()).toContain(`process ${first.pid}`);
    expect(second.output()).toContain(first.dataDir);
    const { text } = await openStream(first, 'Hello!');
    expect(await text).toContain('[DONE]');
    expect(await first.stop()).toEqual(CLEAN);
  });

  it('can be used again after kill -9, and holds the same keys', async () => {
    const first = await startStandalone();
    await first.kill();
    expect(existsSync(join(first.dataDir, LOCK_NAME))).toBe(true);
    const second = await startStandalone({ dataDir: first.dataDir });

    expect(second.keys).toEqual(first.keys);
    const { text } = await openStream(second, 'Hello!');
    expect(await text).toContain('[DONE]');
    expect(await second.stop()).toEqual(CLEAN);
  });

  it('is reported as new, without earlier callbacks, at its first start only', async () => {
    const first = await startStandalone({ isFirstStart: true });
    await eventually(() => first.output().includes('Ctrl-C stops it'));
    expect(await first.stop()).toEqual(CLEAN);
    const second = await startStandalone({ dataDir: first.dataDir });
    await eventually(() => second.output().includes('Ctrl-C stops it'));
    expect(await second.stop()).toEqual(CLEAN);

    expect(first.output()).toContain('(new: sessions and callbacks');
    expect(second.output()).toContain(first.dataDir);
    expect(second.output()).not.toContain('(new:');
  });

  it('can be used when its lock names a process id that is another program by now', async () => {
    const first = await startStandalone();
    await first.kill();
    const lock = join(first.dataDir, LOCK_NAME);
    const left = JSON.parse(readFileSync(lock, 'utf8'));
    expect(left.pid).toBe(first.pid);
    writeFileSync(lock, JSON.stringify({ ...left, pid: process.pid }));
    const second = await startStandalone({ dataDir: first.dataDir });

    expect(await second.stop()).toEqual(CLEAN);
  });

  it('DESIGN 10: generated keys are for their owner alone, and shown by the start that makes them alone', async () => {
    const first = await startStandalone({ command: inTerminal('npm start') });
    const path = join(first.dataDir, 'keys.json');
    const stored = readFileSync(path, 'utf8');
    first.program.type(CTRL_C);
    await first.program.exited;
    const later = await startStandalone({ dataDir: first.dataDir, command: inTerminal('npm start'), env: { LOG_LEVEL: 'trace' } });
    await (await openStream(later, 'Hello!')).text;
    later.program.type(CTRL_C);
    await later.program.exited;
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

  it('DESIGN 10: generated keys are shown to a terminal alone', async () => {
    const standalone = await startStandalone({ env: { LOG_LEVEL: 'trace' } });
    await (await openStream(standalone, 'Hello!')).text;
    await standalone.stop();

    for (const key of Object.values(standalone.keys)) expect(standalone.output()).not.toContain(key);
    expect(standalone.output()).toContain(`router_key in ${join(standalone.dataDir, 'keys.json')}`);
  });

  it('DESIGN 10: a key that the operator gave is never printed, and none is made in its place', async () => {
    const given = { ROUTER_API_KEY: 'sk-router-of-the-operator', AGENT_API_KEY: 'sk-agent-of-the-operator' };
    const standalone = await startStandalone({ command: inTerminal('npm start'), env: { ...given, LOG_LEVEL: 'trace' } });
    await (await openStream(standalone, 'Hello!')).text;
    standalone.program.type(CTRL_C);
    await standalone.program.exited;

    for (const [name, key] of Object.entries(given)) {
      expect(standalone.output()).not.toContain(key);
      expect(standalone.output()).toContain(`$${name}`);
    }
    expect(Object.keys(JSON.parse(readFileSync(join(standalone.dataDir, 'keys.json'), 'utf8')))).toEqual(['house_secret']);
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

  it('sets the level of the log, unless LOG_LEVEL does', async () => {
    const keys = { AGENT_API_KEY: 'key-of-the-agent-1', ROUTER_API_KEY: 'key-of-the-router-1', PLATFORM_PUBLIC_KEY: 'public', PLATFORM_SECRET_KEY: 'secret' };
    const quiet = await ownManifest((text) => text.replace('log_level: INFO', 'log_level: ERROR'));
    const logged = async (env: Record<string, string>) => {
      const standalone = await startStandalone({ env: { ...keys, ...env } });
      const response = await fetch(`${standalone.routerUrl}/api/v1/models`, { headers: { authorization: 'Bearer key-of-the-router-1' } });
      expect(response.status).toBe(200);
      await standalone.stop();
      return standalone.output().includes('"level":"info"');
    };

    expect(await logged(quiet)).toBe(false);
    expect(await logged({ ...quiet, LOG_LEVEL: 'INFO' })).toBe(true);
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
