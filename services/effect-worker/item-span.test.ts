import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Bus } from '#bus/bus.ts';
import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openGuardedPoster } from '#shared/http/guarded-post.ts';
import type { Database } from '#shared/storage/database.ts';
import { migrate } from '#shared/storage/migrate.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { recordingTracing } from '#shared/telemetry/test-support/recording-tracing.ts';
import { contextBelow, spanIdOf } from '#shared/telemetry/trace-context.ts';
import { openHttpDouble } from './test-support/http-double.ts';
import { answerError, openHandMadeServer, openSdkToolServer, type ToolServerDouble } from './test-support/tool-server-doubles.ts';
import { callItem, deliveryItem, WorkerDeployment } from './test-support/worker-deployment.ts';
import { toolTrace } from './tools/tool-trace.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const CARRIED = { tracestate: 'vendor=1', baggage: 'tenant=acme' };
const meta = z.looseObject({ params: z.looseObject({ _meta: z.looseObject({ traceparent: z.string() }) }) });

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
});

async function called(register: (server: McpServer) => void, content: 'off' | 'full' = 'off') {
  return calledAt(await openSdkToolServer(register), content);
}

async function calledAt<Server extends ToolServerDouble>(server: Server, content: 'off' | 'full' = 'off') {
  doubles.push(server);
  const tracing = recordingTracing(content);
  const bundleHash = await deployment.bundle([{ id: 'shop', port: server.port }]);
  const listHash = await deployment.toolList([{ name: 'a', description: 'Books a tour', repeatable: true }]);
  await deployment.start({ kinds: ['tool'] }, { tracing });
  const item = { ...callItem(bundleHash, listHash, 'shop:a', { arguments: { city: 'Oslo' } }), traceparent: PARENT, carried: CARRIED };
  await deployment.publish('tool', item);
  await deployment.reportOf('tool.completed', item.effectId);
  return { span: tracing.spans.find(({ name }) => name.startsWith('execute_tool')), item, server };
}

describe('the span of a tool call', () => {
  it('DESIGN 12: a tool call is a span of its turn or run, and its server gets the context to continue below it', async () => {
    const { span, item, server } = await called((mcp) =>
      mcp.registerTool('a', { inputSchema: { city: z.string() } }, () => ({ content: [{ type: 'text', text: 'rain' }] })),
    );

    expect(span).toMatchObject({ name: 'execute_tool shop:a', parent: PARENT, spanId: spanIdOf(`${item.effectId}#1`), links: [], errorType: null });
    expect(span?.attributes).toMatchObject({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'shop:a', 'mcp.method.name': 'tools/call' });
    expect(span?.attributes?.['mcp.protocol.version']).toMatch(/^20\d\d-\d\d-\d\d$/);
    // The server's id of a session is a credential, so it is in no span.
    expect(span?.attributes).not.toHaveProperty(['mcp.session.id']);
    expect(span?.attributes?.['gen_ai.tool.description']).toBe('Books a tour');
    expect(JSON.stringify(span)).not.toMatch(/Oslo|rain/);
    const [message] = server.messages('tools/call');
    expect(meta.parse(message).params._meta).toMatchObject({ traceparent: span?.traceparent, ...CARRIED });
    expect(span?.attributes?.['jsonrpc.request.id']).toBe(String(Object(message).id));
    expect(span?.attributes).not.toHaveProperty(['rpc.response.status_code']);
  });

  it('names the request that failed, and the code of its error', async () => {
    const { span, server } = await calledAt(
      await openHandMadeServer((message, response) => (message.method === 'tools/call' ? answerError(response, message, -32_602, 'No such city') : undefined)),
    );

    const [message] = server.messages('tools/call');
    expect(span).toMatchObject({ errorType: 'refused', attributes: { 'rpc.response.status_code': '-32602', 'jsonrpc.request.id': String(message?.id) } });
  });

  it('fails as the tool does, and has its content when that is enabled', async () => {
    const answer = { isError: true, content: [{ type: 'text' as const, text: 'rain' }] };
    const { span } = await called((mcp) => mcp.registerTool('a', { inputSchema: { city: z.string() } }, () => answer), 'full');

    expect(span?.errorType).toBe('tool_error');
    expect(span?.attributes?.['gen_ai.tool.call.arguments']).toBe('{"city":"Oslo"}');
    expect(span?.attributes?.['gen_ai.tool.call.result']).toContain('rain');
  });
});

describe('the span of a callback', () => {
  it('DESIGN 12: each attempt of a callback is a span, linked to the one before, and named in the header that goes out', async () => {
    const receiver = await openHttpDouble((_, response) => void response.writeHead(503).end());
    const poster = openGuardedPoster({ rules: { allowHosts: new Set([`127.0.0.1:${receiver.port}`]) } });
    doubles.push(receiver, poster);
    const tracing = recordingTracing();
    await deployment.start({ kinds: ['delivery'] }, { tracing, poster });
    const url = `http://127.0.0.1:${receiver.port}/secret-path?token=hush`;
    const item = deliveryItem(await deployment.delivery({ url, bundleHash: await deployment.bundle(), attempts: 1, traceparent: PARENT }), {
      traceparent: PARENT,
    });
    await deployment.publish('delivery', item);
    await deployment.reportOf('delivery.reported', item.effectId);

    const [span] = tracing.spans;
    expect(span).toMatchObject({
      name: 'POST callback',
      kind: 'client',
      parent: PARENT,
      links: [contextBelow(PARENT, `${item.deliveryId}#1`)],
      errorType: '503',
    });
    expect(span?.attributes).toMatchObject({ 'http.response.status_code': 503, 'server.port': receiver.port, 'http.request.resend_count': 1 });
    expect(receiver.received[0]?.headers['traceparent']).toBe(span?.traceparent);
    expect(JSON.stringify(tracing.spans)).not.toMatch(/secret-path|hush/);
  });
});

it('is none for an item without a context', () => {
  const item = callItem('hash', 'list', 'shop:a');
  expect(toolTrace(item, 'off')).toBeNull();
  expect(toolTrace({ ...item, traceparent: PARENT }, 'off')).not.toBeNull();
});
