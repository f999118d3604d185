// The tool server of `openCountingToolsProcess` (counting-tools.ts), in a process of its own: it says over IPC where it listens and which calls it gets.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

/** Long enough for a worker to be killed within it. */
const CALL_MS = 150;

/** Resolves when it is written. @param {object} message @returns {Promise<void>} */
const send = (message) => new Promise((resolve) => process.send?.(message, () => resolve()));

/** @param {string} tool @param {string} word */
const counting =
  (tool, word) =>
  /** @param {{ key: string }} given */
  async ({ key }) => {
    await send({ tool, key });
    await after(CALL_MS);
    return { content: [{ type: /** @type {const} */ ('text'), text: `${word} ${key}` }] };
  };

function newServer() {
  const server = new McpServer({ name: 'counting', version: '1' }, { capabilities: { tools: {} } });
  const inputSchema = { key: z.string() };
  server.registerTool('book', { description: 'Books it', inputSchema }, counting('book', 'booked'));
  server.registerTool('look', { description: 'Looks it up', inputSchema, annotations: { idempotentHint: true } }, counting('look', 'looked'));
  return server;
}

/** By session. @type {Map<string, StreamableHTTPServerTransport>} */
const sessions = new Map();

const http = createServer(async (request, response) => {
  const id = request.headers['mcp-session-id'];
  const known = typeof id === 'string' ? sessions.get(id) : undefined;
  if (known !== undefined) return known.handleRequest(request, response);
  if (id !== undefined) return void response.writeHead(404).end('no such session');
  /** @type {StreamableHTTPServerTransport} */
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (sessionId) => void sessions.set(sessionId, transport),
  });
  await newServer().connect(transport);
  await transport.handleRequest(request, response);
});

process.on('message', () => void send({ isEcho: true }));
// The test has ended, in whatever way.
process.on('disconnect', () => process.exit());
http.listen(0, '127.0.0.1', () => {
  const address = http.address();
  if (typeof address === 'object' && address !== null) void send({ port: address.port });
});
