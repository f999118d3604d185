import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';
import { openHttpDouble, type ReceivedRequest } from './http-double.ts';

/** A response has the method ''. */
export const rpcMessage = z.looseObject({
  id: z.union([z.number(), z.string()]).optional(),
  method: z.string().default(''),
  params: z.looseObject({}).default({}),
});
export type RpcMessage = z.infer<typeof rpcMessage>;

export interface ToolServerDouble {
  port: number;
  received: ReceivedRequest[];
  /** The JSON-RPC messages of one method, in order. */
  messages(method: string): RpcMessage[];
  close(): Promise<void>;
}

export interface SdkToolServer extends ToolServerDouble {
  /** Forgets its open sessions, as after a restart. */
  dropSessions(): Promise<void>;
  /** Notifies all sessions of a changed tool list. */
  announceChange(): void;
}

/** A tool server made with the MCP SDK, with sessions. */
export async function openSdkToolServer(register: (server: McpServer) => void): Promise<SdkToolServer> {
  const sessions = new Map<string, { server: McpServer; transport: StreamableHTTPServerTransport }>();
  const double = await openHttpDouble(async ({ headers, body }, response, request) => {
    const id = headers['mcp-session-id'];
    const known = typeof id === 'string' ? sessions.get(id) : undefined;
    const parsed: unknown = body.length > 0 ? JSON.parse(body.toString('utf8')) : undefined;
    if (known !== undefined) return known.transport.handleRequest(request, response, parsed);
    if (id !== undefined) return void response.writeHead(404).end('no such session');
    const server = new McpServer({ name: 'double', version: '1' }, { capabilities: { tools: { listChanged: true } } });
    register(server);
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (sessionId) => void sessions.set(sessionId, { server, transport }),
    });
    await server.connect(transport);
    await transport.handleRequest(request, response, parsed);
  });
  const dropSessions = async () => {
    const open = [...sessions.values()];
    sessions.clear();
    await Promise.all(open.map(({ server }) => server.close()));
  };
  return {
    port: double.port,
    received: double.received,
    messages: (method) => messagesOf(double.received, method),
    dropSessions,
    announceChange: () => {
      for (const { server } of sessions.values()) server.sendToolListChanged();
    },
    close: async () => {
      await dropSessions();
      await double.close();
    },
  };
}

export type Misbehave = (message: RpcMessage, response: ServerResponse, received: ReceivedRequest) => unknown;

interface HandMadeOptions {
  /** Its answer to the probe of 2026-07-28. */
  onProbe?: (message: RpcMessage, response: ServerResponse) => void;
  /** Whether it answers requests of a version, by their header, with 400. */
  refuses?: (version: unknown) => boolean;
  /** Called with each notification, before its response. */
  onNotification?: () => void;
  /** Default: a free one. */
  port?: number | undefined;
}

const notFound = (message: RpcMessage, response: ServerResponse) => answerError(response, message, -32_601, 'Method not found');

/**
 * A tool server without the SDK and without sessions. `misbehave` returns the result of a request; undefined means that it has
 * responded itself, or will not.
 */
export async function openHandMadeServer(
  misbehave: Misbehave,
  { onProbe = notFound, refuses = () => false, onNotification = () => {}, port }: HandMadeOptions = {},
): Promise<ToolServerDouble> {
  const double = await openHttpDouble((received, response) => {
    if (refuses(received.headers['mcp-protocol-version'])) return void response.writeHead(400).end('unknown version');
    if (received.method !== 'POST') return void response.writeHead(405).end();
    const message = rpcMessage.parse(JSON.parse(received.body.toString('utf8')));
    if (message.method === '') return void response.writeHead(202).end();
    if (message.method.startsWith('notifications/')) {
      onNotification();
      return void response.writeHead(202).end();
    }
    if (message.method === 'server/discover') return onProbe(message, response);
    const capabilities = { tools: {} };
    const greeting = { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'hand-made', version: '1' } };
    const result = misbehave(message, response, received) ?? (message.method === 'initialize' && !response.headersSent ? greeting : undefined);
    if (result !== undefined) answerWith(response, { jsonrpc: '2.0', id: message.id, result });
  }, port);
  return { port: double.port, received: double.received, messages: (method) => messagesOf(double.received, method), close: double.close };
}

/** Responds with a JSON-RPC error. */
export function answerError(response: ServerResponse, { id }: RpcMessage, code: number, message: string, status = 200): undefined {
  answerWith(response, { jsonrpc: '2.0', id, error: { code, message } }, status);
}

function answerWith(response: ServerResponse, body: object, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

export function messagesOf(received: readonly ReceivedRequest[], method: string): RpcMessage[] {
  const messages = received.filter((one) => one.method === 'POST').map(({ body }) => rpcMessage.parse(JSON.parse(body.toString('utf8'))));
  return messages.filter((message) => message.method === method);
}
