import { spawn } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallbackReceiver, openCallbackReceiver } from '../helpers/callback-receiver.ts';
import { eventually } from '../helpers/eventually.ts';
import { freeFolder } from '../helpers/free-folder.ts';
import { CTRL_C, inTerminal } from '../helpers/in-terminal.ts';
import { root, runProgram } from '../helpers/run-program.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';

interface Ended {
  code: number | null;
  out: string;
  err: string;
}

const PLATFORM_KEYS = { PLATFORM_PUBLIC_KEY: 'pk-of-this-test', PLATFORM_SECRET_KEY: 'sk-of-this-test' };

let receiver: CallbackReceiver;
let server: Standalone;
beforeAll(async () => {
  receiver = await openCallbackReceiver();
  server = await startStandalone({ env: { STREAMING: 'true', COALESCE_MS: '50', OUTBOUND_ALLOW_HOSTS: receiver.host, ...PLATFORM_KEYS } });
});
afterAll(async () => {
  await server.stop();
  await receiver.close();
});

/** Runs the command line, by default on the data folder of the running server. */
function switchyard(args: readonly string[], { input = '', env = {} }: { input?: string; env?: Record<string, string> } = {}): Promise<Ended> {
  const environment = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', DATA_DIR: server.dataDir, ...env };
  const child = spawn(process.execPath, ['scripts/switchyard.mjs', ...args], { cwd: root, env: environment });
  let [out, err] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  child.stdin.end(input);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })));
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '');
const sessionIn = (text: string) => /ses_\w+/.exec(text)?.[0] ?? '';

describe('switchyard chat', () => {
  it('sends a message, and prints the reply that the log has', async () => {
    const { code, out, err } = await switchyard(['chat', '--message', 'How long is the warranty?']);

    expect([code, err]).toEqual([0, '']);
    const { out: log } = await switchyard(['events', 'tail', sessionIn(out), '--once', '--json']);
    const reply = linesOf(log)
      .map((line) => JSON.parse(line))
      .find(({ kind }) => kind === 'assistant_message');
    expect(out).toContain(`\n${reply.text}\n`);
  });

  it('sends each line of its input when the agent is ready for it, in a session that it takes up again', async () => {
    const first = await switchyard(['chat'], { input: 'How long is the warranty?\n\nAnd how do I descale the machine?\n' });
    const session = sessionIn(first.out);
    const second = await switchyard(['chat', '--session', session, '--json'], { input: 'Thank you!\n' });

    expect([first.code, second.code]).toEqual([0, 0]);
    const { out } = await switchyard(['events', 'tail', session, '--once', '--json']);
    const kinds = linesOf(out)
      .map((line) => JSON.parse(line))
      .filter(({ kind }) => kind === 'user_message' || kind === 'assistant_message')
      .map(({ kind }) => kind);
    expect(kinds).toEqual(Array(3).fill(['user_message', 'assistant_message']).flat());
    const received = linesOf(second.out).map((line) => JSON.parse(line));
    expect(received[0]).toEqual({ type: 'session', session_id: session });
    expect(received.filter(({ type }) => type === 'event').map(({ event }) => event.offset)[0]).toBeGreaterThan(5);
  });

  it('ends with 4 for a wrong key, whatever names it, and shows no key', async () => {
    const file = join(await freeFolder('key'), 'key');
    await writeFile(file, 'a-wrong-key\n');
    const byFile = await switchyard(['chat', '--message', 'Hello', '--key-file', file, '--json']);
    const byVariable = await switchyard(['chat', '--message', 'Hello'], { env: { AGENT_API_KEY: 'a-wrong-key' } });
    const missing = await switchyard(['chat', '--message', 'Hello', '--key-file', `${file}.gone`]);

    expect([byFile.code, byVariable.code, missing.code]).toEqual([4, 4, 4]);
    expect(JSON.parse(byFile.err)).toEqual({
      error: { code: 'unauthorized', message: expect.stringContaining(server.agentUrl), fix: expect.stringContaining(file) },
    });
    expect(byVariable.err).toMatch(/^http:.*\n {2}fix: set AGENT_API_KEY .*, or name a file that has the key by --key-file/);
    expect(byFile.err + byVariable.err + byFile.out + byVariable.out).not.toContain('a-wrong-key');
  });

  it('ends with 3 when no server answers, and with 1 for a session that there is not', async () => {
    const away = await switchyard(['chat', '--url', 'http://127.0.0.1:9', '--message', 'Hello', '--json'], { env: { AGENT_API_KEY: 'k' } });
    const unknown = await switchyard(['chat', '--session', 'ses_nowhere', '--message', 'Hello', '--json']);

    expect([away.code, unknown.code]).toEqual([3, 1]);
    expect(JSON.parse(away.err).error.code).toBe('client.no_answer');
    expect(JSON.parse(unknown.err).error).toMatchObject({ code: 'not_found', fix: expect.stringContaining(`${server.agentUrl}/console`) });
  });
});

describe('a server that is another, or none', () => {
  it('is recognised: the other port, an address that is none', async () => {
    const [runs, keys, nonsense, variable] = await Promise.all([
      switchyard(['runs', 'list', '--url', server.routerUrl, '--json']),
      switchyard(['keys', 'list', '--url', server.agentUrl, '--json']),
      switchyard(['chat', '--url', 'nonsense', '--json']),
      switchyard(['chat', '--json'], { env: { SWITCHYARD_AGENT_URL: 'nonsense' } }),
    ]);

    expect(JSON.parse(runs.err).error.message).toBe(`${server.routerUrl} is the model router, not the agent server`);
    expect(JSON.parse(keys.err).error.message).toBe(`${server.agentUrl} is the agent server, not the model router`);
    expect([nonsense.code, JSON.parse(nonsense.err).error.message]).toEqual([2, expect.stringContaining('It must be an address such as')]);
    expect([variable.code, JSON.parse(variable.err).error.message]).toEqual([1, expect.stringContaining('SWITCHYARD_AGENT_URL: it must be an address')]);
  });
});

describe('on a terminal', () => {
  const onTerminal = (command: string) => runProgram(inTerminal(command), { cwd: root, env: { DATA_DIR: server.dataDir } });

  it('ends chat at Ctrl-C, with 130', async () => {
    const chat = onTerminal(`${process.execPath} scripts/switchyard.mjs chat`);
    await eventually(() => chat.output().includes('Session ses_') || chat.hasExited(), { timeoutMs: 60_000 });
    chat.type(CTRL_C);

    expect((await chat.exited).code).toBe(130);
  });

  it('has a line per cell on 20 columns, and a line that says what goes on, which the result replaces', async () => {
    const [table, doctor] = ['keys list', 'doctor'].map((command) =>
      onTerminal(`sh -c 'stty cols 20; exec ${process.execPath} scripts/switchyard.mjs ${command}'`),
    );
    await Promise.all([table?.exited, doctor?.exited]);

    expect(table?.output()).toMatch(/^HASH: [0-9a-f]{64}\r?\nNAME: /m);
    expect(doctor?.output().replaceAll('\u001b[K', '<erased>')).toMatch(/looking at [^\n]*\r<erased>ok +node: /);
  });
});

describe('switchyard events tail', () => {
  it('follows a session until it is interrupted', async () => {
    const { out } = await switchyard(['chat', '--message', 'How long is the warranty?']);
    const session = sessionIn(out);
    const child = spawn(process.execPath, ['scripts/switchyard.mjs', 'events', 'tail', session, '--after', '0'], {
      cwd: root,
      env: { DATA_DIR: server.dataDir },
    });
    let printed = '';
    const isThere = new Promise<void>((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        printed += text;
        if (printed.includes('Thank you!')) resolve();
      });
    });
    const ended = new Promise((resolve) => child.on('close', (code, signal) => resolve(signal ?? code)));
    await switchyard(['chat', '--session', session, '--message', 'Thank you!']);
    await isThere;
    child.kill('SIGINT');

    expect(await ended).toBe('SIGINT');
    expect(linesOf(printed)[0]).toMatch(/^ {4}1 {2}\d{4}-\S+Z {2}\w+ {2}status/);
  });

  it('ends without an error when its reader leaves', async () => {
    const { out } = await switchyard(['chat', '--message', 'How long is the warranty?']);
    const child = spawn(process.execPath, ['scripts/switchyard.mjs', 'events', 'tail', sessionIn(out)], { cwd: root, env: { DATA_DIR: server.dataDir } });
    let err = '';
    child.stderr.on('data', (bytes) => {
      err += bytes;
    });
    child.stdout.once('data', () => child.stdout.destroy());
    const ended = new Promise((resolve) => child.on('close', resolve));
    await switchyard(['chat', '--session', sessionIn(out), '--message', 'Thank you!']);

    expect(await ended).toBe(0);
    expect(err).toBe('');
  });
});

describe('switchyard keys', () => {
  it('makes a key that is shown once, lists, exposes and revokes it', async () => {
    const created = await switchyard(['keys', 'create', 'Shop', '--limit', '5', '--json']);
    const { key, data } = JSON.parse(created.out);
    const list = async () =>
      JSON.parse((await switchyard(['keys', 'list', '--all', '--json'])).out) as { hash: string; disabled: boolean; limit: number | null }[];

    expect(await list()).toContainEqual(expect.objectContaining({ hash: data.hash, name: 'Shop', limit: 5, disabled: false }));
    expect((await switchyard(['keys', 'list'])).out).not.toContain(key);
    expect((await switchyard(['keys', 'expose', data.hash, '--where', 'a public repository'])).out).toContain('disabled');
    expect(await list()).toContainEqual(expect.objectContaining({ hash: data.hash, disabled: true }));
    expect((await switchyard(['keys', 'revoke', data.hash])).code).toBe(0);
    expect((await list()).some(({ hash }) => hash === data.hash)).toBe(false);
    const again = await switchyard(['keys', 'revoke', data.hash, '--json']);
    expect([again.code, JSON.parse(again.err).error.code]).toEqual([1, 'request.not_found']);
  });

  it('refuses wrong values: those of options with 2, those of the server with 1', async () => {
    expect((await switchyard(['keys', 'create', 'Shop', '--limit', 'much'])).code).toBe(2);
    expect((await switchyard(['keys', 'create', 'Shop', '--expires-at', '2001-01-01T00:00:00Z'])).code).toBe(1);
    expect((await switchyard(['keys', 'list'], { env: { ROUTER_MANAGEMENT_KEY: server.keys.routerKey } })).code).toBe(4);
  });
});

describe('switchyard trigger, switchyard runs', () => {
  const claim = { claim_id: 'c-17', model: 'Acme Duo', delivered_on: '2026-03-01', description: 'It leaks.' };
  const trigger = (callbackUrl: string, ...more: string[]) => switchyard(['trigger', 'triage-warranty-claim', '--callback-url', callbackUrl, ...more]);

  it('starts a run and waits for its output, which a callback has too; lists and shows the run', async () => {
    const file = join(await freeFolder('input'), 'claim.json');
    await writeFile(file, JSON.stringify(claim));
    const address = receiver.address(204);
    const { code, out, err } = await trigger(address.url, '--input', `@${file}`, '--wait');

    expect([code, err]).toEqual([0, '']);
    const posted = JSON.parse(String(address.received[0]?.body ?? '{"output":null}'));
    expect(JSON.parse(out)).toEqual(posted.output ?? expect.objectContaining({ decision: expect.any(String) }));
    const list = await switchyard(['runs', 'list', '--status', 'succeeded', '--routine', 'triage-warranty-claim', '--json']);
    const [{ run_id: runId }] = JSON.parse(list.out);
    expect((await switchyard(['runs', 'list'])).out).toMatch(new RegExp(`^${runId} +triage-warranty-claim +succeeded`, 'm'));
    const shown = await switchyard(['runs', 'show', runId]);
    expect(shown.out).toContain(`${runId} of triage-warranty-claim: succeeded`);
    expect(shown.out).toContain(`Callback to ${address.url}: `);
    const again = await switchyard(['runs', 'cancel', runId, '--json']);
    expect([again.code, JSON.parse(again.err).error.code]).toEqual([1, 'conflict']);
  });

  it('cancels a run, of which a caller that waits ends with 1 and its error', async () => {
    const slow = { ...claim, description: '!slow 60000 It leaks.' };
    const started = await trigger(receiver.address(204).url, '--input', JSON.stringify(slow), '--json');
    const { run_id: runId } = JSON.parse(started.out);
    const cancelled = await switchyard(['runs', 'cancel', runId]);
    expect(cancelled.out + cancelled.err).toContain(runId);
    expect((await switchyard(['runs', 'show', runId])).out).toMatch(/: failed, in session/);
  });

  it('refuses wrong input: what is no object with 2, what the routine does not take with 1 and the field', async () => {
    const { url } = receiver.address(204);
    const [noObject, noFile, wrongField, noRoutine] = await Promise.all([
      trigger(url, '--input', '[1]'),
      trigger(url, '--input', '@nowhere.json'),
      trigger(url, '--input', '{"claim_id":"c-17"}'),
      switchyard(['trigger', 'no-such-routine', '--callback-url', url]),
    ]);

    expect([noObject.code, noFile.code, wrongField.code, noRoutine.code]).toEqual([2, 2, 1, 1]);
    expect(noFile.err).toContain('nowhere.json');
    expect(wrongField.err).toMatch(/model/);
  });
});

describe('switchyard documents', () => {
  it('publishes the documents of a folder once, lists them, and refuses another text for a version', async () => {
    const folder = join(await freeFolder('documents'), 'documents');
    await cp(join(root, 'examples/acme-support/documents'), folder, { recursive: true });
    const env = PLATFORM_KEYS;
    const first = await switchyard(['documents', 'publish', folder, '--json'], { env });
    const second = await switchyard(['documents', 'publish', folder], { env });
    const list = await switchyard(['documents', 'list', 'routines', '--json'], { env });

    expect([first.code, first.err, second.code]).toEqual([0, '', 0]);
    const published = JSON.parse(first.out) as { kind: string; id: string; outcome: string }[];
    expect(new Set(published.map(({ outcome }) => outcome))).toEqual(new Set(['published']));
    expect(linesOf(second.out).every((line) => line.endsWith(': unchanged'))).toBe(true);
    expect(linesOf(second.out)).toHaveLength(published.length);
    const routines = published.flatMap(({ kind, id }) => (kind === 'routines' ? [id] : []));
    expect(JSON.parse(list.out).map(({ id }: { id: string }) => id)).toEqual(routines.sort());

    const file = join(folder, 'routines/triage-warranty-claim.yaml');
    await writeFile(file, (await readFile(file, 'utf8')).replace(/^title: .*$/m, 'title: Another title'));
    const changed = await switchyard(['documents', 'publish', folder, '--json'], { env });
    expect(changed.code).toBe(1);
    expect(JSON.parse(changed.err).error.message).toContain(file);
  });

  it('ends with 4 without keys or with wrong ones, and with 1 for a folder that is not there', async () => {
    const without = await switchyard(['documents', 'list', 'prompts']);
    const wrong = await switchyard(['documents', 'list', 'prompts'], { env: { ...PLATFORM_KEYS, PLATFORM_SECRET_KEY: 'wrong-word' } });
    const missing = await switchyard(['documents', 'publish', '/nowhere-at-all'], { env: PLATFORM_KEYS });

    expect([without.code, wrong.code, missing.code]).toEqual([4, 4, 1]);
    expect(without.err).toContain('PLATFORM_PUBLIC_KEY');
    expect(wrong.err).not.toContain('wrong-word');
  });
});

describe('switchyard doctor', () => {
  it('finds a running deployment in order', async () => {
    const { code, out, err } = await switchyard(['doctor', '--json']);

    expect([code, err]).toEqual([0, '']);
    const findings = JSON.parse(out) as { check: string; status: string }[];
    expect([...new Set(findings.map(({ check }) => check))]).toEqual(['node', 'ports', 'disk', 'database', 'servers', 'providers', 'certificates']);
    expect(findings.filter(({ status }) => status === 'failed')).toEqual([]);
  });

  it('names each finding with its fix, and ends with 1', async () => {
    const port = new URL(server.agentUrl).port;
    const env = {
      DATA_DIR: await freeFolder('empty'),
      AGENT_PORT: port,
      DATABASE_URL: 'postgres://nobody:secret-word@127.0.0.1:9/none',
      NATS_URL: 'nats://127.0.0.1:9',
      REDIS_URL: 'redis://127.0.0.1:9',
      OPENAI_API_KEY: 'sk-of-no-account',
      OPENAI_BASE_URL: `${server.routerUrl}/api/v1`,
      SWITCHYARD_AGENT_URL: 'http://127.0.0.1:9',
      PUBLIC_BASE_URL: `https://127.0.0.1:${port}`,
    };
    const { code, out, err } = await switchyard(['doctor', '--json'], { env });

    expect(code).toBe(1);
    const findings = JSON.parse(out) as { check: string; status: string; detail: string; fix: string | null }[];
    const failed = findings.filter(({ status }) => status === 'failed');
    expect([...new Set(failed.map(({ check }) => check))]).toEqual(['ports', 'database', 'broker', 'cache', 'servers', 'providers', 'certificates']);
    expect(failed.every(({ fix }) => fix !== null && fix.length > 10)).toBe(true);
    expect(out + err).not.toContain('secret-word');
    expect(out + err).not.toContain('sk-of-no-account');
  });
});

describe('the command line', () => {
  it.each([
    [[], 2],
    [['--help'], 0],
    [['keys'], 2],
    [['keys', 'create', '--help'], 0],
    [['nonsense'], 2],
    [['events', 'tail'], 2],
    [['events', 'tail', 'ses_1', '--after', 'x'], 2],
    [['validate', 'nowhere.yaml'], 1],
  ] as const)('ends %j with %i', async (args, code) => {
    expect((await switchyard(args)).code).toBe(code);
  });

  it('prints a wrong command line as JSON where JSON is wanted', async () => {
    const { err, out } = await switchyard(['events', 'tail', '--json']);

    expect(JSON.parse(err)).toEqual({
      error: { code: 'request.invalid', message: expect.stringContaining('session'), fix: expect.stringContaining('--help') },
    });
    expect(out).toBe('');
  });
});
