import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { McpServer as OlderServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Bus } from '../bus/bus.ts';
import { openMemoryBus } from '../bus/memory/memory-bus.ts';
import { freePort } from '../services/effect-worker/test-support/http-double.ts';
import { callItem, listItem, WAIT, WorkerDeployment } from '../services/effect-worker/test-support/worker-deployment.ts';
import { systemClock } from '../shared/clock.ts';
import type { Database } from '../shared/storage/database.ts';
import { migrate } from '../shared/storage/migrate.ts';
import { openTestDatabase } from '../shared/storage/pglite/test-support/open-test-database.ts';

let database: Database;
let bus: Bus;
let deployment: WorkerDeployment;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  database = await openTestDatabase();
  await migrate(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  bus = await openMemoryBus({ database, clock: systemClock });
  deployment = await WorkerDeployment.open({ database, bus });
});
afterEach(async () => {
  await deployment.close();
  for (const close of closers.splice(0)) await close();
  await bus.close();
  await database.query('delete from bundles');
  await database.query('delete from tool_servers');
});

async function listen(handle: (request: IncomingMessage, response: ServerResponse, body: string) => Promise<void>): Promise<number> {
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    await handle(request, response, Buffer.concat(chunks).toString('utf8'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return (server.address() as AddressInfo).port;
}

type Register = (server: Pick<McpServer, 'registerTool'>) => void;
const adding = { description: 'Adds two numbers.', inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) };
const sumOf = async ({ a, b }: { a: number; b: number }) => ({ content: [], structuredContent: { sum: a + b } });

/** A server of 2026-07-28, made with its library. */
async function newServer(register: Register, legacy: 'reject' | 'stateless') {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'new', version: '1' }, { capabilities: { tools: { listChanged: true } } });
      register(server);
      return server;
    },
    { legacy },
  );
  closers.push(() => handler.close());
  const port = await listen(async (request, response, body) => {
    const { method = 'GET', url = '/', headers } = request;
    const left = new AbortController();
    response.on('close', () => left.abort());
    const sent = new Request(`http://127.0.0.1${url}`, {
      method,
      headers: Object.entries(headers).map(([name, value]) => [name, String(value)]),
      signal: left.signal,
      ...(method === 'POST' ? { body } : {}),
    });
    const answer = await handler.fetch(sent);
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).flushHeaders();
    if (answer.body !== null) for await (const chunk of answer.body) response.write(chunk);
    response.end();
  });
  return { port, changed: () => handler.notify.toolsChanged() };
}

/** A server with sessions, made with the older library. */
async function olderServer(): Promise<number> {
  const sessions = new Map<unknown, StreamableHTTPServerTransport>();
  return listen(async (request, response, body) => {
    const parsed: unknown = body === '' ? undefined : JSON.parse(body);
    const known = sessions.get(request.headers['mcp-session-id']);
    if (known !== undefined) return known.handleRequest(request, response, parsed);
    const server = new OlderServer({ name: 'older', version: '1' });
    server.registerTool('add', { description: 'Adds.', inputSchema: adding.inputSchema.shape, outputSchema: adding.outputSchema.shape }, sumOf);
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    await transport.handleRequest(request, response, parsed);
  });
}

/** The reference server, as its package starts it. */
async function everything(): Promise<number> {
  const port = await freePort();
  const main = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');
  const child: ChildProcess = spawn(process.execPath, [main, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  closers.push(
    () =>
      new Promise((resolve) => {
        child.on('exit', () => resolve());
        child.kill('SIGKILL');
      }),
  );
  child.stderr?.resume();
  await vi.waitFor(() => fetch(`http://127.0.0.1:${port}/mcp`), WAIT);
  return port;
}

async function shop(port: number) {
  const bundleHash = await deployment.bundle([{ id: 'shop', port }]);
  await deployment.start({ kinds: ['tool'] });
  const names = async () => {
    const item = listItem(bundleHash, ['shop']);
    await deployment.publish('tool', item);
    const { lists } = await deployment.reportOf('tools.listed', item.effectId);
    const listHash = lists['shop'] ?? '';
    const { rows } = await database.query<{ tools: { name: string }[] }>('select tools from tool_lists where hash = $1', [listHash]);
    return { listHash, names: rows[0]?.tools.map(({ name }) => name) };
  };
  const call = async (name: string, args: Record<string, unknown>) => {
    const item = callItem(bundleHash, (await names()).listHash, `shop:${name}`, { arguments: args });
    await deployment.publish('tool', item);
    return (await deployment.reportOf('tool.completed', item.effectId)).outcome;
  };
  return { names, call };
}

describe('tool servers of three kinds', () => {
  const registerAdd: Register = (server) => void server.registerTool('add', adding, sumOf);

  it.each(['reject', 'stateless'] as const)('a server of 2026-07-28, which treats older clients by %s', async (legacy) => {
    const { names, call } = await shop((await newServer(registerAdd, legacy)).port);
    expect((await names()).names).toEqual(['add']);
    expect(await call('add', { a: 2, b: 3 })).toMatchObject({ type: 'result', data: { sum: 5 }, isError: false });
    expect(await call('subtract', { a: 2, b: 3 })).toMatchObject({ type: 'failed', reason: 'refused' });
  });

  it('a server of 2026-07-28 that announces another tool', async () => {
    let hasMore = false;
    const server = await newServer((one) => {
      registerAdd(one);
      if (hasMore) one.registerTool('more', adding, sumOf);
    }, 'reject');
    const { names } = await shop(server.port);
    expect((await names()).names).toEqual(['add']);
    hasMore = true;
    await vi.waitFor(async () => {
      server.changed();
      expect((await names()).names).toEqual(['add', 'more']);
    }, WAIT);
  });

  it('a server with sessions', async () => {
    const { names, call } = await shop(await olderServer());
    expect((await names()).names).toEqual(['add']);
    expect(await call('add', { a: 2, b: 3 })).toMatchObject({ type: 'result', data: { sum: 5 }, isError: false });
    expect(await call('add', { a: 2, b: 'three' })).toMatchObject({ isError: true });
  });

  it('the reference server', async () => {
    const { names, call } = await shop(await everything());
    expect((await names()).names).toEqual(expect.arrayContaining(['echo', 'get-sum']));
    expect(await call('echo', { message: 'hello' })).toMatchObject({ type: 'result', data: 'Echo: hello' });
    expect(await call('trigger-long-running-operation', { duration: 1, steps: 4 })).toMatchObject({ type: 'result', isError: false });
  });
});
