import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { CTRL_C, inTerminal } from '../helpers/in-terminal.ts';
import { openStream } from '../helpers/open-stream.ts';
import { runProgram } from '../helpers/run-program.ts';
import { builtProgram, fewerWasmTiers, type Standalone, startStandalone } from '../helpers/start-standalone.ts';
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

describe('stopping during the start', () => {
  it.each(casesOfToday(['SIGINT', 'SIGTERM'] as const))('closes what is open at %s, and exits with 0', async (signal) => {
    const dataDir = join(await freeFolder('data'), 'data');
    const ports = { ROUTER_PORT: '0', AGENT_PORT: '0' };
    const program = runProgram(builtProgram, { env: { ...fewerWasmTiers, ...ports, DATA_DIR: dataDir } });
    const lock = join(dataDir, 'switchyard.lock');
    await eventually(() => existsSync(lock));
    program.signal(signal);

    expect(await program.exited).toEqual(CLEAN);
    expect(program.output()).toContain(`${signal}: ending the start`);
    expect(program.output()).toContain('Stopped.');
    expect(existsSync(lock)).toBe(false);
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

  it('says of the data folder that it is new, without earlier sessions, at its first start alone', () => {
    expect(first.output()).toContain('(new, so it has no sessions');
    expect(later.output()).toContain(first.dataDir);
    expect(later.output()).not.toContain('(new');
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
    await eventually(() => callback.received.length > 0, { timeoutMs: 60_000 });
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
      .find((each) => each.includes('callbacks and events are pending'));
    expect(line, standalone.output()).toBeDefined();
    expect(JSON.parse(String(line))).toMatchObject({ level: 'warn', callbacks: 1, receivers: [receiver.host] });
    expect(line).not.toContain(new URL(callback.url).pathname);
    const posted = callback.received.length;
    callback.answer(204);
    next = await startStandalone({ dataDir: standalone.dataDir, env });
    await eventually(() => callback.received.length > posted, { timeoutMs: 60_000 });
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
    expect(next.output()).not.toContain('callbacks and events are pending');
  });
});
