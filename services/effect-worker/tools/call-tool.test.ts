import type { ServerResponse } from 'node:http';
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import type { EffectWorkerConfig } from '../service.ts';
import { freePort, openHttpDouble } from '../test-support/http-double.ts';
import {
  answerError,
  type Misbehave,
  openHandMadeServer,
  openSdkToolServer,
  type SdkToolServer,
  type ToolServerDouble,
} from '../test-support/tool-server-doubles.ts';
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

/** Calls one tool of one server. @returns the report to the owner */
async function call(
  port: number,
  options: { repeatable?: boolean; arguments?: Record<string, unknown>; config?: Partial<EffectWorkerConfig>; hasKey?: boolean; deadlineInMs?: number } = {},
) {
  const { repeatable = false, arguments: args = {}, config = {}, hasKey = false, deadlineInMs = 30_000 } = options;
  const bundleHash = await deployment.bundle([{ id: 'shop', port, hasKey }]);
  const listHash = await deployment.toolList([{ name: 'a', repeatable }]);
  await deployment.start({ kinds: ['tool'], ...config });
  const item = callItem(bundleHash, listHash, 'shop:a', { arguments: args, deadlineAtMs: systemClock.nowMs() + deadlineInMs });
  await deployment.publish('tool', item);
  return { ...(await deployment.reportOf('tool.completed', item.effectId)), effectId: item.effectId };
}

const textOf = (text: string) => ({ content: [{ type: 'text' as const, text }] });
const calls =
  (misbehave: Misbehave): Misbehave =>
  (message, response, received) =>
    message.method === 'tools/call' ? misbehave(message, response, received) : undefined;

describe('a call that certainly was not executed', () => {
  it('has failed as unreachable at a closed port, after three tries', async () => {
    const { outcome } = await call(await freePort());
    expect(outcome).toEqual({ type: 'failed', reason: 'unreachable', message: "the tool server can't be reached" });
  });

  it.each([401, 403])('has failed as auth_failed when the server answers %s, without retries', async (status) => {
    const server = await openHttpDouble((_, response) => void response.writeHead(status).end('who are you?'));
    doubles.push(server);
    const { outcome } = await call(server.port, { hasKey: true });
    expect(outcome).toMatchObject({ type: 'failed', reason: 'auth_failed' });
    // One by the call, and maybe one by the discovery at the start.
    expect(server.received.length).toBeLessThanOrEqual(2);
    expect(deployment.lines.join()).not.toContain(TOOL_KEY);
    expect(JSON.stringify(deployment.commands)).not.toContain('who are you');
  });

  it('has its server listed again when that begins to refuse the key, so that this is known before the list grows old', async () => {
    let isLocked = false;
    const server = await handMade((message, response) => {
      if (isLocked) return void response.writeHead(401).end();
      return message.method === 'tools/list' ? { tools: [{ name: 'a', inputSchema: { type: 'object' } }] } : undefined;
    });
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port, hasKey: true }]);
    await deployment.start({ kinds: ['tool'] });
    const listed = async () => {
      const item = listItem(bundleHash, ['shop']);
      await deployment.publish('tool', item);
      return deployment.reportOf('tools.listed', item.effectId);
    };
    const { lists } = await listed();
    isLocked = true;
    const item = callItem(bundleHash, lists['shop'] ?? '', 'shop:a');
    await deployment.publish('tool', item);
    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'auth_failed' });

    expect((await listed()).unavailable).toEqual({ shop: 'auth_failed' });
    const { rows } = await database.query('select state from tool_servers where bundle_hash = $1', [bundleHash]);
    expect(rows).toEqual([{ state: 'auth_failed' }]);
  });

  it.each([
    ['there is no such tool', -32_601],
    ['it does not take the arguments', -32_602],
  ])('is refused when the server says that %s', async (_, code) => {
    const server = await handMade(calls((message, response) => answerError(response, message, code, 'no, thanks')));
    const { outcome } = await call(server.port);
    expect(outcome).toEqual({ type: 'failed', reason: 'refused', message: 'no, thanks' });
  });

  it('is refused for an unknown server', async () => {
    const bundleHash = await deployment.bundle([]);
    await deployment.start({ kinds: ['tool'] });
    const item = callItem(bundleHash, await deployment.toolList([]), 'shop:a');
    await deployment.publish('tool', item);
    expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'refused' });
  });

  it('never follows a redirect to another host', async () => {
    const elsewhere = await handMade(calls(() => textOf('from elsewhere')));
    const server = await openHttpDouble((_, response) => void response.writeHead(307, { location: `http://127.0.0.1:${elsewhere.port}/mcp` }).end());
    doubles.push(server);
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'failed', reason: 'unreachable' });
    expect(elsewhere.received).toEqual([]);
  });

  it('waits as long as a busy server asks, and succeeds then', async () => {
    let turnedAway = 0;
    const server = await handMade(
      calls((_message, response) => {
        if (turnedAway > 0) return textOf('at last');
        turnedAway += 1;
        return void response.writeHead(503, { 'retry-after': '0' }).end();
      }),
    );
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'result', data: 'at last' });
  });

  it('has failed as timeout when its time is over before a slot is free', async () => {
    const held: ServerResponse[] = [];
    const server = await handMade(calls((_message, response) => void held.push(response)));
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    const listHash = await deployment.toolList([{ name: 'a' }]);
    await deployment.start({ kinds: ['tool'] });
    const first = Array.from({ length: 16 }, () => callItem(bundleHash, listHash, 'shop:a'));
    for (const item of first) await deployment.publish('tool', item);
    await vi.waitFor(() => expect(server.messages('tools/call')).toHaveLength(16), WAIT);
    const late = callItem(bundleHash, listHash, 'shop:a', { deadlineAtMs: systemClock.nowMs() + 300 });
    await deployment.publish('tool', late);

    expect((await deployment.reportOf('tool.completed', late.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'timeout' });
    expect(server.messages('tools/call')).toHaveLength(16);
    for (const response of held) response.destroy();
    await Promise.all(first.map(({ effectId }) => deployment.reportOf('tool.completed', effectId)));
  });
});

describe('a call that may have been executed', () => {
  const cutOff: Misbehave = calls((_message, response) => void response.destroy());

  it('has an unknown outcome, and is not made again, when the connection is lost', async () => {
    const server = await handMade(cutOff);
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'failed', reason: 'outcome_unknown' });
    expect(server.messages('tools/call')).toHaveLength(1);
  });

  it('is repeated once, when it is repeatable', async () => {
    const server = await handMade(cutOff);
    const { outcome } = await call(server.port, { repeatable: true });
    expect(outcome).toMatchObject({ type: 'failed', reason: 'unreachable' });
    expect(server.messages('tools/call')).toHaveLength(2);
  });

  it('has an unknown outcome when the stream of its answer ends without it', async () => {
    const server = await handMade(calls((_message, response) => void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n')));
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'failed', reason: 'outcome_unknown' });
  });

  it('has an unknown outcome when it takes too long, and the server gets a cancellation', async () => {
    const server = await handMade(calls(() => undefined));
    const { outcome } = await call(server.port, { config: { timeouts: { toolCallMs: 100 } } });
    expect(outcome).toMatchObject({ type: 'failed', reason: 'outcome_unknown' });
    await vi.waitFor(() => expect(server.messages('notifications/cancelled')).toHaveLength(1), WAIT);
  });

  it('has timed out when it takes too long and changes nothing', async () => {
    const server = await handMade(calls(() => undefined));
    const { outcome } = await call(server.port, { repeatable: true, config: { timeouts: { toolCallMs: 100 } } });
    expect(outcome).toMatchObject({ type: 'failed', reason: 'timeout' });
  });

  it('ends at its item’s deadline, whatever the tool’s own limit', async () => {
    const server = await handMade(calls(() => undefined));
    // On a busy machine a deadline may pass before the call is sent: the next one is later.
    for (let deadlineInMs = 400; server.messages('tools/call').length === 0; deadlineInMs *= 2) {
      const { outcome } = await call(server.port, { deadlineInMs });
      const isSent = server.messages('tools/call').length > 0;
      expect(outcome).toMatchObject({ type: 'failed', reason: isSent ? 'outcome_unknown' : expect.stringMatching(/^(?:timeout|outcome_unknown)$/) });
    }
  });
});

describe('a response', () => {
  it('that is an error of the tool is passed to the model', async () => {
    const server = await sdkServer((mcp) => mcp.registerTool('a', { inputSchema: { city: z.string() } }, () => ({ ...textOf('no such city'), isError: true })));
    const { outcome } = await call(server.port, { arguments: { city: 'Atlantis' } });
    expect(outcome).toEqual({ type: 'result', data: 'no such city', metadata: {}, isError: true });
  });

  it('that breaks the protocol is an error that is reported to the model', async () => {
    const server = await handMade(calls((_message, response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"half":')));
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'result', isError: true });
  });

  it('that is nested 5,000 deep is an error that is reported to the model, at the first delivery of its item', async () => {
    const nested = `${'['.repeat(5_000)}${']'.repeat(5_000)}`;
    const server = await handMade(
      calls(({ id }, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(`{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"a":${nested}},"_meta":{"b":${nested}}}}`);
      }),
    );
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'result', isError: true, data: { error: expect.stringContaining('nested deeper than 64') } });
    expect(server.messages('tools/call')).toHaveLength(1);
    expect(deployment.lines.join()).not.toContain('a work item has failed');
  });

  it.each([
    ['application/json', ''],
    ['text/event-stream', 'data: '],
  ])('DESIGN 5: whose structured content has a number that cannot be kept exactly is its text, in an answer of %s', async (type, before) => {
    const structured = '{"order_id":9007199254740993,"amount":1e400}';
    const server = await handMade(
      calls(({ id }, response) => {
        const body = `{"jsonrpc":"2.0","id":${id},"result":{"structuredContent":${structured},"content":[{"type":"text","text":"in words"}]}}`;
        response.writeHead(200, { 'content-type': type }).end(`${before}${body}\n\n`);
      }),
    );
    const { outcome } = await call(server.port);
    expect(outcome).toEqual({ type: 'result', data: structured, metadata: {}, isError: false });
  });

  it.each([
    ['messages that are not JSON-RPC', 'data: nonsense\n\n'.repeat(64)],
    ['random bytes', Buffer.from(Uint8Array.from({ length: 65_536 }, (_, at) => (at * 2_654_435_761) >>> 13))],
  ])('DESIGN 13: a stream of %s is ended, and its call settles although the server goes on', async (_, garbage) => {
    let isEnded = false;
    const server = await handMade(
      calls((_message, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.on('close', () => {
          isEnded = true;
        });
        const write = () => void (isEnded || response.write(garbage, () => setImmediate(write)));
        write();
      }),
    );
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'result', isError: true, data: { error: expect.stringContaining('the tool server sends') } });
    await vi.waitFor(() => expect(isEnded).toBe(true), WAIT);
  });

  it('that never comes, because the handshake is answered with a stream of something else, has failed as unreachable', async () => {
    const server = await handMade((message, response) => {
      if (message.method !== 'initialize') return;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: nonsense\n\n'.repeat(10));
    });
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'failed', reason: 'unreachable' });
  });

  it('comes also from a server whose standing stream is garbage, which is opened once', async () => {
    const server = await sdkServer((mcp) => mcp.registerTool('a', {}, () => textOf('fine')));
    let standing = 0;
    const double = await openHttpDouble(async ({ method, headers, body }, response) => {
      if (method === 'GET') {
        standing += 1;
        return void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`retry: 0\n\n${'data: 1\n\n'.repeat(10)}`);
      }
      const { host: _host, 'content-length': _length, connection: _connection, ...passedOn } = headers;
      const answer = await fetch(`http://127.0.0.1:${server.port}`, {
        method,
        headers: Object.fromEntries(Object.entries(passedOn).map(([name, value]) => [name, String(value)])),
        ...(body.length > 0 ? { body } : {}),
      });
      const session = answer.headers.get('mcp-session-id');
      response.writeHead(answer.status, {
        'content-type': answer.headers.get('content-type') ?? '',
        ...(session === null ? {} : { 'mcp-session-id': session }),
      });
      response.end(Buffer.from(await answer.arrayBuffer()));
    });
    doubles.push(double);
    expect((await call(double.port)).outcome).toMatchObject({ type: 'result', data: 'fine' });
    await vi.waitFor(() => expect(standing).toBe(1), WAIT);
    // Time enough for a stream with an immediate retry to be resumed.
    const bundleHash = await deployment.bundle([{ id: 'shop', port: double.port }]);
    for (let calls = 0; calls < 5; calls += 1) {
      const item = callItem(bundleHash, await deployment.toolList([{ name: 'a' }]), 'shop:a');
      await deployment.publish('tool', item);
      expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ data: 'fine' });
    }
    expect(standing).toBe(1);
  });

  it('with another error of the server is passed to the model, and requested once more where that is harmless', async () => {
    const server = await handMade(calls((message, response) => answerError(response, message, -32_603, 'out of luck')));
    const { outcome } = await call(server.port, { repeatable: true });
    expect(outcome).toEqual({ type: 'result', data: { error: 'out of luck' }, metadata: {}, isError: true });
    expect(server.messages('tools/call')).toHaveLength(2);
  });

  it('is the tool’s result, and its request has the unchanged arguments and the configured key', async () => {
    let received: unknown;
    const server = await sdkServer((mcp) =>
      mcp.registerTool('a', { inputSchema: { city: z.string(), days: z.number() }, outputSchema: { sky: z.string() } }, (args) => {
        received = args;
        return { structuredContent: { sky: 'blue' }, ...textOf('{"sky":"blue"}'), _meta: { source: 'station 7' } };
      }),
    );
    const { outcome } = await call(server.port, { arguments: { city: 'Oslo', days: 3 }, hasKey: true });
    expect(outcome).toEqual({ type: 'result', data: { sky: 'blue' }, metadata: { source: 'station 7' }, isError: false });
    expect(received).toEqual({ city: 'Oslo', days: 3 });
    expect(server.received.every(({ headers }) => headers.authorization === `Bearer ${TOOL_KEY}`)).toBe(true);
    expect(deployment.lines.join()).not.toContain(TOOL_KEY);
  });

  it('may take longer than a tool’s limit, as long as there is progress', async () => {
    const server = await sdkServer((mcp) =>
      mcp.registerTool('a', {}, async ({ _meta, sendNotification }) => {
        const progressToken = _meta?.progressToken ?? 0;
        for (let progress = 1; progress <= 8; progress += 1) {
          await new Promise((resolve) => setTimeout(resolve, 300));
          await sendNotification({ method: 'notifications/progress', params: { progressToken, progress } });
        }
        return textOf('done');
      }),
    );
    const { outcome } = await call(server.port, { config: { timeouts: { toolCallMs: 2_000 } } });
    expect(outcome).toMatchObject({ type: 'result', data: 'done' });
  });
});

describe('a session', () => {
  it('is shared by all calls, and opened anew when the server has lost it', async () => {
    const server = await sdkServer((mcp) => mcp.registerTool('a', {}, () => textOf('here')));
    const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
    const listHash = await deployment.toolList([{ name: 'a' }]);
    await deployment.start({ kinds: ['tool'] });
    const ask = async () => {
      const item = callItem(bundleHash, listHash, 'shop:a');
      await deployment.publish('tool', item);
      return (await deployment.reportOf('tool.completed', item.effectId)).outcome;
    };
    await Promise.all([ask(), ask(), ask()]);
    expect(server.messages('initialize')).toHaveLength(1);

    await server.dropSessions();
    expect(await ask()).toMatchObject({ type: 'result', data: 'here' });
    expect(server.messages('initialize')).toHaveLength(2);
  });

  it('that is lost repeatedly does not hold a call without end', async () => {
    let made = 0;
    const server = await handMade(
      calls((_message, response) => {
        made += 1;
        return void response.writeHead(404).end();
      }),
    );
    const { outcome } = await call(server.port);
    expect(outcome).toMatchObject({ type: 'failed', reason: 'unreachable' });
    expect(made).toBe(2);
  });
});

describe('a server that is away', () => {
  it('gets no more requests after five failures in a row', async () => {
    let asked = 0;
    const server = await openHttpDouble((_, response) => {
      asked += 1;
      response.destroy();
    });
    doubles.push(server);
    const bundleHash = await deployment.bundle([]);
    const away = await deployment.bundle([{ id: 'shop', port: server.port }]);
    await database.query(`update bundles set created_at = now() + interval '1 hour' where hash = $1`, [bundleHash]);
    await deployment.start({ kinds: ['tool'] });
    const listHash = await deployment.toolList([{ name: 'a', repeatable: true }]);
    for (let round = 0; round < 3; round += 1) {
      const item = callItem(away, listHash, 'shop:a');
      await deployment.publish('tool', item);
      expect((await deployment.reportOf('tool.completed', item.effectId)).outcome).toMatchObject({ type: 'failed', reason: 'unreachable' });
    }
    expect(asked).toBe(5);
  });
});
