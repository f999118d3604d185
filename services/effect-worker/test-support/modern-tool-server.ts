import type { ServerResponse } from 'node:http';
import { openHttpDouble, type ReceivedRequest } from './http-double.ts';
import { answerError, messagesOf, type RpcMessage, rpcMessage, type ToolServerDouble } from './tool-server-doubles.ts';

export const MODERN = '2026-07-28';
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

export interface ModernToolServer extends ToolServerDouble {
  /** The requests of one method, with their headers. */
  requests(method: string): ReceivedRequest[];
  /** On each open `subscriptions/listen` stream. */
  announceChange(): void;
  /** Ends those streams. */
  dropStreams(): void;
  streams(): number;
}

export type Answer = (message: RpcMessage, response: ServerResponse, received: ReceivedRequest) => unknown;

/**
 * A tool server of 2026-07-28 without a library: no handshake, no sessions. `answer` returns the result of a request, to which `resultType` is added;
 * undefined means that it has responded itself, or will not.
 */
export async function openModernToolServer(answer: Answer, { announces = true } = {}): Promise<ModernToolServer> {
  const streams = new Map<ServerResponse, unknown>();
  const double = await openHttpDouble((received, response) => {
    if (received.method !== 'POST') return void response.writeHead(405).end();
    const message = rpcMessage.parse(JSON.parse(received.body.toString('utf8')));
    if (message.method.startsWith('notifications/')) return void response.writeHead(202).end();
    const meta = message.params['_meta'];
    if (typeof meta !== 'object' || meta === null || Reflect.get(meta, VERSION_KEY) !== MODERN) return answerError(response, message, -32_022, 'what?', 400);
    if (message.method === 'subscriptions/listen' && announces) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      streams.set(response, message.id);
      response.on('close', () => streams.delete(response));
      return send(response, message.id, 'subscriptions/acknowledged', { notifications: { toolsListChanged: true } });
    }
    const found = { supportedVersions: [MODERN], capabilities: { tools: { listChanged: announces } }, ttlMs: 0, cacheScope: 'private' };
    const result = answer(message, response, received) ?? (message.method === 'server/discover' && !response.headersSent ? found : undefined);
    if (result === undefined) return;
    const body = { jsonrpc: '2.0', id: message.id, result: { resultType: 'complete', ...(result as object) } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  return {
    port: double.port,
    received: double.received,
    messages: (method) => messagesOf(double.received, method),
    requests: (method) => double.received.filter(({ body }) => body.length > 0 && rpcMessage.parse(JSON.parse(body.toString('utf8'))).method === method),
    announceChange: () => {
      for (const [response, id] of streams) send(response, id, 'tools/list_changed', {});
    },
    dropStreams: () => {
      for (const response of streams.keys()) response.destroy();
    },
    streams: () => streams.size,
    close: double.close,
  };
}

function send(response: ServerResponse, id: unknown, notification: string, params: object): void {
  const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
  response.write(`: a comment\n\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: `notifications/${notification}`, params: { ...params, _meta } })}\n\n`);
}
