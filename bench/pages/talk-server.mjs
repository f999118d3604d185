import { PassThrough } from 'node:stream';
import fastify from 'fastify';

/** @typedef {{ url: string, open: () => Promise<void>, send: (event: string, data: object) => void, append: (event: object) => void, close: () => Promise<void> }} TalkServer */

/**
 * The chat page with an agent server of one session, whose stream has what the caller sends and when.
 *
 * @param {typeof import('../../shared/http-server/built-pages.ts')} pages of the build
 * @returns {Promise<TalkServer>} `open` resolves once a page reads the stream
 */
export async function startTalkServer({ builtPage, pageFiles }) {
  const app = fastify();
  /** @type {Set<PassThrough>} */
  const streams = new Set();
  let offset = -1;
  let onStream = () => {};
  const opened = new Promise((resolve) => {
    onStream = () => resolve(undefined);
  });
  const session = () => ({ id: 'ses_0', title: null, created_at: new Date().toISOString(), ephemeral: false, last_offset: offset });
  const write = (/** @type {string} */ frame) => {
    for (const stream of streams) stream.write(frame);
  };

  await app.register(pageFiles());
  const sendPage = builtPage('chat.html', 'Bench');
  app.get('/chat', async (request, reply) => sendPage(request, reply));
  app.get('/sessions', async () => ({ items: [], has_more: false, next_cursor: null }));
  app.get('/sessions/:id', async () => session());
  app.get('/sessions/:id/events', async ({ headers }, reply) => {
    if (!headers.accept?.includes('text/event-stream')) return [];
    const body = new PassThrough();
    streams.add(body);
    body.on('close', () => streams.delete(body));
    body.write(': hello\n\n');
    onStream();
    return reply.type('text/event-stream').send(body);
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return {
    url,
    open: async () => {
      await opened;
    },
    send: (event, data) => write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
    append: (event) => {
      offset += 1;
      const { kind } = /** @type {{ kind: string }} */ (event);
      write(`id: ${offset}\nevent: ${kind}\ndata: ${JSON.stringify({ created_at: new Date().toISOString(), ...event, offset })}\n\n`);
    },
    close: async () => {
      for (const stream of streams) stream.destroy();
      await app.close();
    },
  };
}
