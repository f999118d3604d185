import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../tests/helpers/eventually.ts';
import { runProgram } from '../tests/helpers/run-program.ts';
import { freePort } from './servers/test-tcp.mjs';

const GENERATED_KEY = 'sk-sy-v1-generated';
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ask-'));
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ router_key: GENERATED_KEY, agent_key: 'sk-agent' }));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('a question to the router', () => {
  it('prints each word as it comes, with the key of the key file, and ends with 0', async () => {
    const asked: { request: IncomingMessage; response: ServerResponse }[] = [];
    let body = '';
    await running((request, response) => {
      request.setEncoding('utf8').on('data', (piece) => {
        body += piece;
      });
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`: comment\n\nid: gen-1\n${chunk('Hello')}`);
      asked.push({ request, response });
    });
    const ask = asking(['Hello', 'there']);
    await eventually(() => ask.output() === 'Hello');
    const [{ request, response }] = asked as [(typeof asked)[number]];
    response.write(chunk(' wörld').slice(0, 40));
    response.end(`${chunk(' wörld').slice(40)}data: [DONE]\n\n`);

    expect(await ask.exited).toEqual({ code: 0, signal: null });
    expect(ask.output()).toBe('Hello wörld\n');
    expect(request.headers.authorization).toBe(`Bearer ${GENERATED_KEY}`);
    expect(body).toBe('{"stream":true,"messages":[{"role":"user","content":"Hello there"}]}');
  });

  it.each<[string, string, string]>([
    ['fails on the way', 'data: {"error":{"code":502,"message":"the provider is gone"},"choices":[]}\n\n', 'The answer failed: the provider is gone'],
    ['ends before it is complete', '', 'The stream ended before the answer was complete.'],
  ])('ends with 1 and prints why when the answer %s', async (_, rest, message) => {
    await running((_request, response) => void response.writeHead(200).end(`${chunk('Half')}${rest}`));
    const ask = asking(['Hello']);

    expect(await ask.exited).toEqual({ code: 1, signal: null });
    expect(ask.output()).toBe(`Half\n${message}\n`);
  });

  it('ends with 1 and prints it when the connection breaks', async () => {
    await running((_request, response) => response.writeHead(200).write(chunk('Half'), () => response.destroy()));
    const ask = asking(['Hello']);

    expect(await ask.exited).toEqual({ code: 1, signal: null });
    expect(ask.output()).toMatch(/The connection broke in the middle of the answer \(.+\)\.\n$/);
  });

  it.each([
    [401, 4, { error: { code: 401, message: 'No such key' } }, /rejects the key \(401\), which is router_key of .*keys\.json: No such key\nSet the key/],
    [503, 1, { error: { code: 503, message: 'Too busy' } }, /answered 503: Too busy/],
  ])('ends with the reason when the answer is %i: with %i', async (status, code, body, message) => {
    await running((_request, response) => void response.writeHead(status).end(JSON.stringify(body)));
    const ask = asking(['Hello']);

    expect((await ask.exited).code).toBe(code);
    expect(ask.output()).toMatch(message);
    expect(ask.output()).not.toContain(GENERATED_KEY);
  });

  it('uses the variable of a key that the operator set, and prints it where it is not set', async () => {
    await running((request, response) => void response.end(`${chunk(String(request.headers.authorization))}data: [DONE]\n\n`), { variable: 'SHOP_KEY' });
    const ask = asking(['Hello'], { SHOP_KEY: 'of-the-shop' });
    await ask.exited;
    expect(ask.output()).toBe('Bearer of-the-shop\n');
    const without = asking(['Hello']);

    expect((await without.exited).code).toBe(4);
    expect(without.output()).toContain('npm start was started with SHOP_KEY, which is not set here');
  });
});

it('does not print a key that no header can carry', async () => {
  await running((_request, response) => void response.end('data: [DONE]\n\n'), { variable: 'SHOP_KEY' });
  const ask = asking(['Hello'], { SHOP_KEY: 'of-the-shop\nand-another' });

  expect((await ask.exited).code).toBe(1);
  expect(ask.output()).toMatch(/The key, which is \$SHOP_KEY, contains a character/);
  expect(ask.output()).not.toContain('of-the-shop');
});

describe('a question to the agent', () => {
  it.each([
    ['ready', 0, 'An answer.\n'],
    ['error', 1, 'An answer.\nThe turn failed: too late\n'],
  ])('prints the agent’s messages until the turn is over with %s', async (status, code, output) => {
    const events = [
      { offset: 1, kind: 'status', status: 'processing' },
      { offset: 2, kind: 'assistant_message', text: 'An answer.' },
      { offset: 3, kind: 'status', status, error_detail: 'too late' },
    ];
    let polls = 0;
    await running((request, response) => {
      if (request.url === '/sessions') return void response.writeHead(201).end('{"id":"ses_1"}');
      if (request.method === 'POST') return void response.writeHead(201).end('{"offset":0}');
      polls += 1;
      // The first long-poll returns without an event.
      if (polls === 1) return void response.writeHead(504).end('{}');
      const from = Number(new URL(request.url ?? '', 'http://x').searchParams.get('min_offset'));
      response.end(JSON.stringify(events.filter(({ offset }) => offset >= from).slice(0, 1)));
    });
    const ask = asking(['--agent', 'How', 'long?']);

    expect(await ask.exited).toEqual({ code, signal: null });
    expect(ask.output()).toBe(output);
  });
});

describe('in a cluster', () => {
  it('goes to the next process where one can not be reached', async () => {
    const url = await serving((_request, response) => void response.end(`${chunk('Hello')}data: [DONE]\n\n`));
    writeRunning({ kind: 'cluster', urls: [await deadUrl(), url] });
    const ask = asking(['Hello']);

    expect(await ask.exited).toEqual({ code: 0, signal: null });
    expect(ask.output()).toBe('Hello\n');
  });

  it('names each address and the command of the cluster when none can be reached', async () => {
    const urls = [await deadUrl(), await deadUrl()];
    writeRunning({ kind: 'cluster', urls });
    const ask = asking(['--agent', 'Hello']);

    expect(await ask.exited).toEqual({ code: 3, signal: null });
    const reached = urls.map((url) => `${url} can't be reached (ECONNREFUSED)`).join(', ');
    expect(ask.output().replaceAll(/\s+/g, ' ')).toBe(`${reached}: the process may have ended, and is not started again. Restart npm run cluster. `);
  });

  it('sends no message twice: the first process may have accepted what it did not answer', async () => {
    const broken = await serving((request) => void request.socket.destroy());
    let requests = 0;
    const other = await serving((_request, response) => {
      requests += 1;
      response.end('data: [DONE]\n\n');
    });
    writeRunning({ kind: 'cluster', urls: [broken, other] });

    expect((await asking(['Hello']).exited).code).toBe(3);
    expect(requests).toBe(0);
  });

  it('says that it has no process of the server', async () => {
    writeRunning({ kind: 'cluster', urls: [] });
    const ask = asking(['Hello']);

    expect((await ask.exited).code).toBe(3);
    expect(ask.output()).toContain('This cluster has no such server: start one with other counts (npm run cluster).');
  });
});

describe('without a question', () => {
  it('names npm start when nothing runs on the data folder, or what ran there has ended', async () => {
    const never = asking(['Hello']);
    expect(await never.exited).toEqual({ code: 3, signal: null });
    expect(never.output()).toContain(`No Switchyard is running on the data folder ${folder}.`);
    expect(never.output()).toContain('npm start');

    const ended = runProgram([process.execPath, '--version']);
    await ended.exited;
    writeFileSync(join(folder, 'running.json'), JSON.stringify({ pid: ended.pid, router: { url: 'http://127.0.0.1:1', key: { field: 'router_key' } } }));
    const after = asking(['Hello']);
    await after.exited;
    expect(after.output()).toContain('No Switchyard is running on the data folder');
  });

  it.each([[[]], [['--loud', 'Hello']]])('prints its usage for %o, and ends with 2', async (args) => {
    const ask = asking(args);

    expect(await ask.exited).toEqual({ code: 2, signal: null });
    expect(ask.output()).toContain('npm run -s ask -- "Hello"');
  });
});

function asking(args: string[], env: Record<string, string> = {}) {
  return runProgram([process.execPath, 'scripts/ask.mjs', ...args], { env: { DATA_DIR: folder, ...env } });
}

/** A stub server, with a running file as `npm start` writes it. */
async function running(answer: Answer, key: object = { field: 'router_key' }): Promise<void> {
  writeRunning({ kind: 'start', urls: [await serving(answer)], key });
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function serving(answer: Answer): Promise<string> {
  const server = createServer(answer);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

/** Nothing listens there. */
async function deadUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

/** Both servers at the same addresses. */
function writeRunning({ kind, urls, key = { field: 'router_key' } }: { kind: string; urls: string[]; key?: object }): void {
  const [router, agent] = [key, { field: 'agent_key' }].map((one) => ({ url: urls[0] ?? '', urls, key: one }));
  writeFileSync(join(folder, 'running.json'), JSON.stringify({ kind, pid: process.pid, router, agent }));
}

function chunk(content: string): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
}
