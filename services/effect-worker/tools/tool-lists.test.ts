import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { freePort, openHttpDouble } from '../test-support/http-double.ts';
import {
  answerError,
  type Misbehave,
  openHandMadeServer,
  openSdkToolServer,
  type SdkToolServer,
  type ToolServerDouble,
} from '../test-support/tool-server-doubles.ts';
import { callItem, listItem, WAIT, WorkerDeployment } from '../test-support/worker-deployment.ts';

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
  // A later test's server may reuse an earlier one's port, and would get its list.
  await database.query('delete from tool_servers');
});

async function sdkServer(register: (server: McpServer) => void): Promise<SdkToolServer> {
  const server = await openSdkToolServer(register);
  doubles.push(server);
  return server;
}

async function handMade(misbehave: Misbehave): Promise<ToolServerDouble> {
  const server = await openHandMadeServer(misbehave);
  doubles.push(server);
  return server;
}

/** Answers `tools/list` with what the function makes of the cursor. */
const lists =
  (page: (cursor: unknown) => unknown): Misbehave =>
  (message) =>
    message.method === 'tools/list' ? page(message.params['cursor']) : undefined;
const tool = (name: string, fields: object = {}) => ({ name, inputSchema: { type: 'object' }, ...fields });

/** Requests the lists of servers. @returns the report to the owner */
async function ask(bundleHash: string, servers: string[], about: { deadlineAtMs?: number } = {}, wait = WAIT) {
  const item = listItem(bundleHash, servers, about);
  await deployment.publish('tool', item);
  return deployment.reportOf('tools.listed', item.effectId, wait);
}

async function storedList(hash: string | undefined): Promise<unknown> {
  const { rows } = await database.query<{ tools: unknown }>('select tools from tool_lists where hash = $1', [hash]);
  return rows[0]?.tools;
}

async function stateOf(bundleHash: string, serverId: string) {
  const { rows } = await database.query<{ state: string; list_hash: string | null }>(
    'select state, list_hash from tool_servers where bundle_hash = $1 and server_id = $2',
    [bundleHash, serverId],
  );
  return rows[0];
}

/** A list has 60 s, and a hundred pages are a hundred consecutive requests: on a busy machine they take much of it. */
const LIST_WAIT = { ...WAIT, timeout: 70_000 };

/** One server's stored tools. */
async function listedBy(server: ToolServerDouble): Promise<unknown> {
  const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
  await deployment.start({ kinds: ['tool'] });
  const { lists: found } = await ask(bundleHash, ['shop'], { deadlineAtMs: systemClock.nowMs() + LIST_WAIT.timeout }, LIST_WAIT);
  return storedList(found['shop']);
}

describe('a list', () => {
  it('names the servers that have none, and why, beside those that have', async () => {
    const good = await handMade(lists(() => ({ tools: [tool('a')] })));
    const locked = await openHttpDouble((_, response) => void response.writeHead(401).end());
    doubles.push(locked);
    const bundleHash = await deployment.bundle([
      { id: 'good', port: good.port },
      { id: 'locked', port: locked.port },
      { id: 'away', port: await freePort() },
    ]);
    await deployment.start({ kinds: ['tool'] });
    const { lists: found, unavailable, timedOut } = await ask(bundleHash, ['good', 'locked', 'away', 'unheard-of']);

    expect(timedOut).toBe(false);
    expect(Object.keys(found)).toEqual(['good']);
    expect(unavailable).toEqual({ locked: 'auth_failed', away: 'unreachable', 'unheard-of': 'unreachable' });
    expect(await stateOf(bundleHash, 'away')).toEqual({ state: 'unreachable', list_hash: null });
    expect(await stateOf(bundleHash, 'locked')).toEqual({ state: 'auth_failed', list_hash: null });
    expect(await stateOf(bundleHash, 'good')).toEqual({ state: 'ready', list_hash: found['good'] });
  });

  it('reports that its deadline ended it, and nothing about the servers', async () => {
    const mute = await openHttpDouble(() => {});
    doubles.push(mute);
    const bundleHash = await deployment.bundle([{ id: 'shop', port: mute.port }]);
    await deployment.start({ kinds: ['tool'] });

    expect(await ask(bundleHash, ['shop'], { deadlineAtMs: Date.now() + 500 })).toMatchObject({ lists: {}, timedOut: true });
  });

  it('leaves out what can not be used, with a warning for each, and retains the rest in order', async () => {
    const old = { type: 'object', $schema: 'http://json-schema.org/draft-07/schema#', properties: { a: { type: 'integer', exclusiveMinimum: 0 } } };
    const server = await handMade(
      lists(() => ({
        tools: [
          tool('z', { description: 'last letter', title: 'Z', annotations: { idempotentHint: true } }),
          { name: 'no-schema' },
          { inputSchema: { type: 'object' } },
          'not even an object',
          tool('broken', { inputSchema: { type: 'object', properties: { a: { type: 'no such type' } } } }),
          tool('far', { inputSchema: { $ref: 'https://elsewhere.example/schema.json' } }),
          tool('z'),
          tool('only-as-a-task', { execution: { taskSupport: 'required' } }),
          tool('a', { inputSchema: old, title: 7, description: null, annotations: { title: 'From the annotations', readOnlyHint: 'yes' } }),
        ],
      })),
    );

    expect(await listedBy(server)).toEqual([
      { name: 'z', title: 'Z', description: 'last letter', inputSchema: { type: 'object' }, repeatable: true },
      { name: 'a', title: 'From the annotations', description: null, inputSchema: old, repeatable: false },
    ]);
    const warnings = deployment.lines.filter((line) => line.includes('lists something that can not be used'));
    expect(warnings).toHaveLength(7);
  });

  it('has all pages, in order', async () => {
    const server = await handMade(
      lists((cursor) => (cursor === undefined ? { tools: [tool('a')], nextCursor: 'two' } : { tools: [tool('b')], nextCursor: null })),
    );
    expect(await listedBy(server)).toMatchObject([{ name: 'a' }, { name: 'b' }]);
  });

  it('ends at a cycle, and after a hundred pages', async () => {
    const circle = await handMade(lists((cursor) => ({ tools: [tool(String(cursor))], nextCursor: cursor === 'one' ? 'two' : 'one' })));
    expect(await listedBy(circle)).toMatchObject([{ name: 'undefined' }, { name: 'one' }, { name: 'two' }]);
    await deployment.stopWorkers();

    let pages = 0;
    const endless = await handMade(
      lists(() => {
        pages += 1;
        return { tools: [tool(`t${pages}`)], nextCursor: `c${pages}` };
      }),
    );
    const stored = await listedBy(endless);
    expect(Array.isArray(stored) ? stored.length : 0).toBe(100);
  }, 120_000);

  it('is unavailable when the response is invalid', async () => {
    const server = await handMade(lists(() => ({ toolz: [] })));
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    await deployment.start({ kinds: ['tool'] });
    expect((await ask(bundleHash, ['shop'])).unavailable).toEqual({ shop: 'unreachable' });
  });

  it('has the same hash for the same tools, whatever the order of their members', async () => {
    const one = await handMade(lists(() => ({ tools: [{ name: 'a', description: 'd', inputSchema: { type: 'object', title: 't' } }] })));
    const two = await handMade(lists(() => ({ tools: [{ inputSchema: { title: 't', type: 'object' }, description: 'd', name: 'a' }] })));
    const bundleHash = await deployment.bundle([
      { id: 'one', port: one.port },
      { id: 'two', port: two.port },
    ]);
    await deployment.start({ kinds: ['tool'] });
    const { lists: found } = await ask(bundleHash, ['one', 'two']);
    expect(found['one']).toMatch(/^[0-9a-f]{64}$/);
    expect(found['one']).toBe(found['two']);
  });

  it('of a real server has what the SDK says of a tool', async () => {
    const server = await sdkServer((mcp) => {
      const inputSchema = { city: z.string().describe('a name') };
      mcp.registerTool('weather', { title: 'Weather', description: 'of a city', inputSchema, annotations: { readOnlyHint: true } }, () => ({ content: [] }));
    });
    expect(await listedBy(server)).toMatchObject([
      {
        name: 'weather',
        title: 'Weather',
        description: 'of a city',
        inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
        repeatable: true,
      },
    ]);
  });
});

/** An SDK server with this list, valid or not. */
const sdkServerListing = (tools: object[]) => sdkServer((mcp) => mcp.server.setRequestHandler(ListToolsRequestSchema, () => ({ tools })));

/** Counts ticks that other work of the process gets. */
function countTurns() {
  let turns = 0;
  let next = setImmediate(function turn() {
    turns += 1;
    next = setImmediate(turn);
  });
  return { now: () => turns, stop: () => clearImmediate(next) };
}

describe('a list of hostile size', () => {
  afterEach(() => vi.restoreAllMocks());

  it('DESIGN 13: a tool list is checked one tool per tick, and none of its schemas is compiled', async () => {
    const costly = (index: number) => ({
      type: 'object',
      properties: Object.fromEntries(Array.from({ length: 20 }, (_, p) => [`p${index}_${p}`, { anyOf: [{ type: 'string' }, { minimum: p }] }])),
    });
    const tools = Array.from({ length: 300 }, (_, index) => tool(`t${index}`, { inputSchema: costly(index) }));
    const turns = countTurns();
    const checkedAt: number[] = [];
    const check = Ajv2020.prototype.validateSchema;
    vi.spyOn(Ajv2020.prototype, 'validateSchema').mockImplementation(function (this: Ajv2020, schema, throws) {
      checkedAt.push(turns.now());
      return check.call(this, schema, throws);
    });
    const compile = vi.spyOn(Ajv2020.prototype, 'compile');
    try {
      expect(await listedBy(await sdkServerListing(tools))).toHaveLength(tools.length);
    } finally {
      turns.stop();
    }
    expect(checkedAt.length).toBeGreaterThanOrEqual(tools.length);
    // The first check compiles the meta-schema, which is checked too.
    expect(new Set(checkedAt).size).toBeGreaterThanOrEqual(tools.length);
    expect(compile).not.toHaveBeenCalled();
  });

  it('DESIGN 13: a tool list is truncated at 512 KiB, with a warning that names the server and the limit', async () => {
    const tools = Array.from({ length: 600 }, (_, index) => tool(`t${index}`, { description: 'd'.repeat(1_000) }));
    const stored = await listedBy(await sdkServerListing(tools));

    expect(Buffer.byteLength(JSON.stringify(stored))).toBeLessThanOrEqual(524_288 + 2 * tools.length);
    expect(stored).toEqual(tools.slice(0, Array.isArray(stored) ? stored.length : 0).map((one) => expect.objectContaining({ name: one.name })));
    expect(Array.isArray(stored) ? stored.length : 0).toBeGreaterThan(400);
    expect(deployment.lines.filter((line) => line.includes('"server":"shop"') && line.includes('more than 524288 bytes'))).toHaveLength(1);
  });

  it.each([
    ['in one page', () => ({ tools: [tool('a', { icons: { description: 'x'.repeat(3 * 1_048_576) } })] })],
    ['over its pages', (cursor: unknown) => ({ tools: [tool(`a${cursor}`, { icons: { description: 'x'.repeat(100_000) } })], nextCursor: `${cursor}+` })],
  ])('is not read to its end %s when it is larger than what could be kept of it', async (_, page) => {
    const server = await handMade(lists(page));
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    await deployment.start({ kinds: ['tool'] });

    expect((await ask(bundleHash, ['shop'])).unavailable).toEqual({ shop: 'unreachable' });
    expect(deployment.lines.some((line) => line.includes('"server":"shop"') && line.includes('larger than 2097152 bytes'))).toBe(true);
    expect(server.messages('tools/list').length).toBeLessThan(60);
  });

  it('names twenty of the omitted tools, and counts the others', async () => {
    const server = await handMade(lists(() => ({ tools: [...Array.from({ length: 5_000 }, () => 0), tool('late')] })));
    expect(await listedBy(server)).toEqual([]);
    const warnings = deployment.lines.filter((line) => line.includes('lists something that can not be used'));
    expect(warnings).toHaveLength(22);
    expect(warnings.join()).toContain('1980 more tools are left out');
    expect(warnings.join()).toContain('more than 2000 tools');
  });

  it.each([
    ['no regular expression', { properties: { a: { pattern: '(' } } }],
    ['no regular expression', { patternProperties: { '(': {} } }],
    ["can't resolve reference", { properties: { a: { $ref: '#/$defs/none' } } }],
    ["can't resolve reference", { properties: { a: { $ref: 'https://elsewhere.example/schema.json' } } }],
    ['larger than 65536 characters', { description: 'x'.repeat(65_536) }],
  ])('leaves out a tool whose schema is or has: %s', async (why, inputSchema) => {
    const known = { $defs: { b: {} }, properties: { a: { $ref: '#/$defs/b' }, pattern: { const: { $ref: 'https://a.example' } } } };
    const server = await handMade(lists(() => ({ tools: [tool('bad', { inputSchema }), tool('good', { inputSchema: known })] })));
    expect(await listedBy(server)).toMatchObject([{ name: 'good' }]);
    expect(deployment.lines.filter((line) => line.includes('tool \\"bad\\" is left out') && line.includes(why))).toHaveLength(1);
  });
});

describe('a cached list', () => {
  it('is not requested again for half a minute, whichever worker requested it', async () => {
    const server = await handMade(lists(() => ({ tools: [tool('a')] })));
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    await deployment.start({ kinds: ['tool'] });
    const first = await ask(bundleHash, ['shop']);
    await deployment.stopWorkers();
    await deployment.start({ kinds: ['tool'] });
    expect((await ask(bundleHash, ['shop'])).lists).toEqual(first.lists);
    expect(server.messages('tools/list')).toHaveLength(1);

    await database.query(`update tool_servers set checked_at = now() - interval '31 seconds' where bundle_hash = $1`, [bundleHash]);
    expect((await ask(bundleHash, ['shop'])).lists).toEqual(first.lists);
    expect(server.messages('tools/list')).toHaveLength(2);
  });

  it('is requested again when the server reports a change', async () => {
    const names = ['a'];
    const server = await sdkServer((mcp) => {
      for (const name of names) mcp.registerTool(name, {}, () => ({ content: [] }));
    });
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    await deployment.start({ kinds: ['tool'] });
    await ask(bundleHash, ['shop']);
    // Only a standing stream carries a server's own notifications.
    await vi.waitFor(() => expect(server.received.some(({ method }) => method === 'GET')).toBe(true), WAIT);
    server.announceChange();

    await vi.waitFor(async () => {
      await ask(bundleHash, ['shop']);
      expect(server.messages('tools/list')).toHaveLength(2);
    }, WAIT);
  });

  it('is requested again when a listed tool is unknown to the server', async () => {
    const server = await handMade((message, response) => {
      if (message.method === 'tools/list') return { tools: [tool('a')] };
      return message.method === 'tools/call' ? answerError(response, message, -32_602, 'unknown tool') : undefined;
    });
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    await deployment.start({ kinds: ['tool'] });
    const { lists: found } = await ask(bundleHash, ['shop']);
    const item = callItem(bundleHash, found['shop'] ?? '', 'shop:a');
    await deployment.publish('tool', item);
    await deployment.reportOf('tool.completed', item.effectId);

    await ask(bundleHash, ['shop']);
    expect(server.messages('tools/list')).toHaveLength(2);
  });

  it('stays valid when its server goes away', async () => {
    const server = await handMade(lists(() => ({ tools: [tool('a')] })));
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    await deployment.start({ kinds: ['tool'] });
    const { lists: found } = await ask(bundleHash, ['shop']);
    await server.close();
    await database.query(`update tool_servers set checked_at = now() - interval '31 seconds' where bundle_hash = $1`, [bundleHash]);

    expect((await ask(bundleHash, ['shop'])).unavailable).toEqual({ shop: 'unreachable' });
    expect(await stateOf(bundleHash, 'shop')).toEqual({ state: 'unreachable', list_hash: found['shop'] });
  });
});

describe('the discovery at the start', () => {
  it('lists the tools of the newest configuration, retries until all servers have answered, and delays nothing', async () => {
    let isUp = false;
    const server = await handMade((message, response) => {
      if (!isUp) return void response.writeHead(500).end();
      return message.method === 'tools/list' ? { tools: [tool('a')] } : undefined;
    });
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    await deployment.start({ kinds: ['tool'] });
    await vi.waitFor(async () => expect(await stateOf(bundleHash, 'shop')).toEqual({ state: 'unreachable', list_hash: null }), WAIT);
    isUp = true;

    await vi.waitFor(async () => expect(await stateOf(bundleHash, 'shop')).toMatchObject({ state: 'ready' }), WAIT);
  });

  it('does not delay the stop of a worker', async () => {
    const server = await openHttpDouble(() => {});
    doubles.push(server);
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    const worker = await deployment.start({ kinds: ['tool'] });
    await vi.waitFor(() => expect(server.received).not.toHaveLength(0), WAIT);
    await worker.stop();

    // A request that times out says something about the server, one that is stopped does not.
    expect(await stateOf(bundleHash, 'shop')).toBeUndefined();
  });
});
