import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CountedUpstream {
  url: string;
  /** Connections that were ever opened. */
  opened(): number;
  /** Connections that are open. */
  open(): number;
  /** Paths that were posted to, with their number. */
  posts: Map<string, number>;
  /** Lets calls of the model `held` have their answers. */
  release(): void;
  close(): Promise<void>;
}

const REPLY_MS = 5;
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

/** Speaks POST …/chat/completions, whole and streamed, after a moment, and counts its connections. */
export async function openCountedUpstream(): Promise<CountedUpstream> {
  let opened = 0;
  const connections = new Set<object>();
  const posts = new Map<string, number>();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const server = createServer(async (request, response) => {
    const { url = '' } = request;
    posts.set(url, (posts.get(url) ?? 0) + 1);
    let body = '';
    for await (const bytes of request) body += bytes;
    const { stream, model } = JSON.parse(body);
    const common = { id: 'c', created: 1, model };
    if (model === 'held') await released;
    await new Promise((resolve) => setTimeout(resolve, REPLY_MS));
    if (stream !== true) {
      const choices = [{ index: 0, message: { role: 'assistant', content: `Hello of ${url}` }, finish_reason: 'stop' }];
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...common, object: 'chat.completion', choices, usage }));
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    const chunk = (choices: object[], more = {}) =>
      response.write(`data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', choices, ...more })}\n\n`);
    chunk([{ index: 0, delta: { role: 'assistant', content: 'Hello of ' }, finish_reason: null }]);
    await new Promise((resolve) => setTimeout(resolve, REPLY_MS));
    chunk([{ index: 0, delta: { content: url }, finish_reason: 'stop' }]);
    chunk([], { usage });
    response.end('data: [DONE]\n\n');
  });
  server.on('connection', (socket) => {
    opened += 1;
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    opened: () => opened,
    open: () => connections.size,
    posts,
    release,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
