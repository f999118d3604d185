import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import type { ListedTool } from '#bus/messages/tool.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { openHttpDouble } from '../test-support/http-double.ts';
import { type Answer, MODERN, type ModernToolServer, openModernToolServer } from '../test-support/modern-tool-server.ts';
import { answerError, openHandMadeServer, type RpcMessage } from '../test-support/tool-server-doubles.ts';
import { callItem, listItem, TOOL_KEY, WAIT, WorkerDeployment } from '../test-support/worker-deployment.ts';

let database: Database;
let bus: Bus;
let deployment: WorkerDeployment;
const doubles: { close(): Promise<void> }[] = [];

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
  await Promise.all(doubles.splice(0).map((double) => double.close()));
  await bus.close();
  await database.query('delete from bundles');
  await database.query('delete from tool_servers');
});

const tool = (name: string, fields: object = {}) => ({ name, inputSchema: { type: 'object' }, ...fields });
const text = (value: string) => ({ content: [{ type: 'text', text: value }] });
const list = (tools: object[], fields: object = {}) => ({ tools, ttlMs: 0, cacheScope: 'private', ...fields });

async function modern(answer: Answer, options?: { announces: boolean }): Promise<ModernToolServer> {
  const server = await openModernToolServer(answer, options);
  doubles.push(server);
  return server;
}

/** Lists tools and calls them, with what is given for each method. */
const answering =
  (answers: Record<string, (message: RpcMessage, response: Parameters<Answer>[1]) => unknown>): Answer =>
  (message, response) =>
    (answers[message.method] ?? (message.method === 'tools/list' ? () => list([tool('a')]) : () => undefined))(message, response);

interface CallOptions {
  tool?: Partial<ListedTool>;
  arguments?: Record<string, unknown>;
}

/** Starts a worker with one server, and returns a function that calls its tool `a`. */
async function caller(port: number) {
  const bundleHash = await deployment.bundle([{ id: 'shop', port, hasKey: true }]);
  await deployment.start({ kinds: ['tool'] });
  return async ({ tool: listed = {}, arguments: args = {} }: CallOptions = {}) => {
    const item = callItem(bundleHash, await deployment.toolList([{ name: 'a', ...listed }]), 'shop:a', { arguments: args });
    await deployment.publish('tool', item);
    return (await deployment.reportOf('tool.completed', item.effectId)).outcome;
  };
}

async function listed(port: number) {
  const bundleHash = await deployment.bundle([{ id: 'shop', port }]);
  await deployment.start({ kinds: ['tool'] });
  return async () => {
    const item = listItem(bundleHash, ['shop']);
    await deployment.publish('tool', item);
    const { lists } = await deployment.reportOf('tools.listed', item.effectId);
    const { rows } = await database.query<{ tools: ListedTool[] }>('select tools from tool_lists where hash = $1', [lists['shop']]);
    return rows[0]?.tools.map(({ name }) => name);
  };
}

describe('a server of 2026-07-28', () => {
  it('is called without a handshake: its version, method and name stand in headers, and no session', async () => {
    const server = await modern(answering({ 'tools/call': () => text('done') }));
    const call = await caller(server.port);
    expect(await call({ arguments: { x: 1 } })).toMatchObject({ type: 'result', data: 'done', isError: false });
    const [request] = server.requests('tools/call');
    expect(request?.headers).toMatchObject({
      'mcp-protocol-version': MODERN,
      'mcp-method': 'tools/call',
      'mcp-name': 'a',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${TOOL_KEY}`,
    });
    expect(request?.headers).not.toHaveProperty('mcp-session-id');
    expect(server.messages('tools/call')[0]?.params).toMatchObject({
      name: 'a',
      arguments: { x: 1 },
      _meta: { 'io.modelcontextprotocol/protocolVersion': MODERN },
    });
    expect(server.messages('initialize')).toEqual([]);
    expect(server.received.filter(({ method }) => method !== 'POST')).toEqual([]);
  });

  it('is probed once, and its later calls need no request before them', async () => {
    const server = await modern(answering({ 'tools/call': () => text('done') }));
    const call = await caller(server.port);
    await call();
    await call();
    expect(server.messages('server/discover')).toHaveLength(1);
    expect(server.messages('tools/call')).toHaveLength(2);
  });

  it('that streams its answer, with progress and comments, is read to the end', async () => {
    const stream = (message: RpcMessage, response: Parameters<Answer>[1]): undefined => {
      const progressToken = Reflect.get(message.params['_meta'] as object, 'progressToken');
      const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } };
      const result = { jsonrpc: '2.0', id: message.id, result: { resultType: 'complete', ...text('streamed') } };
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n');
      response.end(`data: ${JSON.stringify(progress)}\n\ndata: ${JSON.stringify(result)}\n\n`);
    };
    const server = await modern(answering({ 'tools/call': (message, response) => stream(message, response) }));
    expect(await (await caller(server.port))()).toMatchObject({ type: 'result', data: 'streamed' });
  });

  it.each([
    { repeatable: false, outcome: { type: 'failed', reason: 'outcome_unknown' }, requests: 1 },
    { repeatable: true, outcome: { type: 'result', data: 'again' }, requests: 2 },
  ])('that loses the stream of an answer is called once more only if the call is repeatable: $repeatable', async ({ repeatable, outcome, requests }) => {
    let isFirst = true;
    const server = await modern(
      answering({
        'tools/call': (_, response) => {
          if (!isFirst) return text('again');
          isFirst = false;
          response.writeHead(200, { 'content-type': 'text/event-stream' }).write('id: 7\ndata:\n\n');
          setImmediate(() => response.destroy());
          return undefined;
        },
      }),
    );
    expect(await (await caller(server.port))({ tool: { repeatable } })).toMatchObject(outcome);
    const ids = server.messages('tools/call').map(({ id }) => id);
    expect(ids).toHaveLength(requests);
    expect(new Set(ids).size).toBe(requests);
    // No attempt to resume it, although its events have ids.
    expect(server.received.filter(({ method }) => method === 'GET')).toEqual([]);
  });

  it('that asks for input gets none: the call is an error of the tool', async () => {
    const server = await modern(
      answering({
        'tools/call': () => ({ resultType: 'input_required', inputRequests: { a: { method: 'elicitation/create', params: {} } }, requestState: 's' }),
      }),
    );
    expect(await (await caller(server.port))()).toMatchObject({ type: 'result', isError: true, data: { error: expect.stringContaining('further input') } });
    expect(server.messages('tools/call')).toHaveLength(1);
  });

  it('that sends a result without its type breaks the protocol', async () => {
    const server = await modern(answering({ 'tools/call': () => ({ ...text('x'), resultType: undefined }) }));
    expect(await (await caller(server.port))()).toMatchObject({
      type: 'result',
      isError: true,
      data: { error: expect.stringContaining('breaks the protocol') },
    });
  });

  it('gets annotated arguments as headers, too', async () => {
    const server = await modern(answering({ 'tools/call': () => text('done') }));
    const inputSchema = { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } };
    await (await caller(server.port))({ tool: { inputSchema }, arguments: { region: 'Zürich' } });
    expect(server.requests('tools/call')[0]?.headers['mcp-param-region']).toBe('=?base64?WsO8cmljaA==?=');
  });

  it('that refuses those headers is listed again, and the call is refused', async () => {
    const server = await modern(answering({ 'tools/call': (message, response) => answerError(response, message, -32_020, 'headers differ', 400) }));
    const names = await listed(server.port);
    await names();
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    const item = callItem(bundleHash, await deployment.toolList([{ name: 'a' }]), 'shop:a');
    await deployment.publish('tool', item);
    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'refused' });
    const before = server.messages('tools/list').length;
    await names();
    expect(server.messages('tools/list').length).toBe(before + 1);
  });

  it('keeps its good tools when one is broken, or its annotations are', async () => {
    const annotated = { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } };
    const tools = [tool('good'), { name: 'no schema' }, tool('bad headers', { inputSchema: annotated }), tool('bad results', { outputSchema: { type: 7 } })];
    const server = await modern(answering({ 'tools/list': () => list(tools) }));
    expect(await (await listed(server.port))()).toEqual(['good']);
    expect(deployment.lines.filter((line) => line.includes('can not be used'))).toHaveLength(3);
  });

  it('is listed again after a change that it announces on its stream, also on a stream after a lost one', async () => {
    let names = ['a'];
    const server = await modern(answering({ 'tools/list': () => list(names.map((name) => tool(name))) }));
    const find = await listed(server.port);
    expect(await find()).toEqual(['a']);
    await vi.waitFor(() => expect(server.streams()).toBe(1), WAIT);
    names = ['a', 'b'];
    expect(await find()).toEqual(['a']);
    server.announceChange();
    await vi.waitFor(async () => expect(await find()).toEqual(['a', 'b']), WAIT);
    server.dropStreams();
    names = ['c'];
    // What changes while no stream is open is not announced.
    await vi.waitFor(async () => expect(await find()).toEqual(['c']), WAIT);
  });

  it('is listed again when the time is over for which it says that its list holds', async () => {
    const server = await modern(answering({ 'tools/list': () => list([tool('a')], { ttlMs: 1 }) }), { announces: false });
    const find = await listed(server.port);
    await find();
    await vi.waitFor(async () => {
      await find();
      // The discovery at the start and the first request may each have listed it once.
      expect(server.messages('tools/list').length).toBeGreaterThan(3);
    }, WAIT);
  });

  it('that refuses the version of a call is probed again, and the call is made', async () => {
    let isFirst = true;
    const server = await modern(
      answering({
        'tools/call': (message, response) => {
          if (!isFirst) return text('done');
          isFirst = false;
          return answerError(response, message, -32_022, 'another version', 400);
        },
      }),
    );
    expect(await (await caller(server.port))()).toMatchObject({ type: 'result', data: 'done' });
    expect(server.messages('server/discover')).toHaveLength(2);
  });

  it('that speaks with sessions from now on is probed again, and the call is made once', async () => {
    const server = await modern(answering({ 'tools/call': () => text('modern') }));
    const call = await caller(server.port);
    expect(await call()).toMatchObject({ data: 'modern' });
    await server.close();
    const older = await openHandMadeServer(({ method }) => (method === 'tools/call' ? text('older') : method === 'tools/list' ? { tools: [] } : undefined), {
      port: server.port,
      refuses: (version) => version === MODERN,
    });
    doubles.push(older);
    expect(await call()).toMatchObject({ data: 'older' });
    expect(older.messages('initialize').length).toBeGreaterThan(0);
  });
});

describe('a server with sessions', () => {
  it.each([
    ['a JSON-RPC error', 200, JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_601, message: 'Method not found' } })],
    ['400 and an error that is of no era', 400, JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'Server not initialized' } })],
    ['400 and a text', 400, 'Bad Request: no session'],
    ['404', 404, 'not here'],
    ['405', 405, ''],
  ])('that answers the probe with %s gets a handshake', async (_, status, body) => {
    const inner = await openHandMadeServer(({ method }) => (method === 'tools/call' ? text('done') : method === 'tools/list' ? { tools: [] } : undefined), {
      onProbe: (message, response) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(body.replace('"id":null', `"id":${JSON.stringify(message.id)}`));
      },
    });
    doubles.push(inner);
    expect(await (await caller(inner.port))()).toMatchObject({ type: 'result', data: 'done' });
    const [request] = inner.received.filter(({ body: sent }) => sent.includes('"tools/call"'));
    expect(request?.headers).not.toHaveProperty('mcp-method');
  });

  it.each([401, 403])('that answers the probe with %s is not tried in another way', async (status) => {
    const locked = await openHttpDouble((_, response) => void response.writeHead(status).end());
    doubles.push(locked);
    expect(await (await caller(locked.port))()).toMatchObject({ type: 'failed', reason: 'auth_failed' });
    expect(locked.received.every(({ body }) => body.includes('server/discover'))).toBe(true);
  });
});

describe('a structured result', () => {
  const outputSchema = { type: 'object', properties: { total: { type: 'integer' } }, required: ['total'] };
  const cases: [string, object, object][] = [
    ['that fits the schema of the tool is the data', { structuredContent: { total: 3 }, content: [] }, { data: { total: 3 }, isError: false }],
    [
      'that does not is an error of the tool',
      { structuredContent: { total: 'x' }, content: [] },
      { isError: true, data: { error: expect.stringContaining('schema') } },
    ],
    [
      'of a failure is not checked',
      { structuredContent: { reason: 'none left' }, content: [], isError: true },
      { isError: true, data: { reason: 'none left' } },
    ],
    ['that is missing leaves the text', text('3'), { data: '3', isError: false }],
  ];
  it.each(cases)('%s', async (_, result, outcome) => {
    const server = await modern(answering({ 'tools/call': () => result }));
    expect(await (await caller(server.port))({ tool: { outputSchema } })).toMatchObject({ type: 'result', ...outcome });
  });
});
