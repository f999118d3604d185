import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { type FastifyReply, fastify } from 'fastify';
import { builtPage, pageFiles } from '../../shared/http-server/built-pages.ts';

/** An event of the log, in any shape. */
type AnyEvent = Record<string, unknown> & { offset: number };

export interface PageServer {
  origin: string;
  /** `min_offset` of each reading of the log. */
  readFrom: number[];
  /** Appends to the log, at its next offset. */
  append(...events: Record<string, unknown>[]): void;
  /** Sends what is no event of the log, such as `delta`. */
  send(event: string, data: object): void;
  /** Of the next messages. */
  refuseMessages(status: number, body: object): void;
  close(): Promise<void>;
}

export interface PageServerOptions {
  agentName?: string;
  sessionTitles?: string[];
}

/** The chat page with an agent server that sends whatever a test wants, one session, and no login. */
export async function startPageServer({ agentName = 'Agent', sessionTitles = [] }: PageServerOptions = {}): Promise<PageServer> {
  const log: AnyEvent[] = [];
  const streams = new Set<PassThrough>();
  const readFrom: number[] = [];
  let refusal: { status: number; body: object } | null = null;
  const app = fastify();
  const session = (id: string, title: string | null) => ({ id, title, created_at: '2026-01-01T10:00:00.000Z', ephemeral: false, last_offset: log.length - 1 });
  const append = (...events: Record<string, unknown>[]) => {
    const added = events.map((event, at) => ({ created_at: '2026-01-01T10:00:00.000Z', ...event, offset: log.length + at }));
    // Not as arguments: there may be more than a call takes.
    for (const event of added) log.push(event);
    const text = added.map(written).join('');
    for (const stream of streams) stream.write(text);
    return added;
  };
  const stream = (from: number, reply: FastifyReply) => {
    const body = new PassThrough();
    streams.add(body);
    body.on('close', () => streams.delete(body));
    body.write(`: hello\n\n${log.slice(from).map(written).join('')}`);
    return reply.type('text/event-stream').send(body);
  };

  await app.register(pageFiles());
  const send = builtPage('chat.html', agentName);
  app.get('/chat', async (request, reply) => send(request, reply));
  app.get('/sessions', async () => ({ items: sessionTitles.map((title, at) => session(`ses_${at}`, title)), has_more: false, next_cursor: null }));
  app.get<{ Params: { id: string } }>('/sessions/:id', async ({ params }) => session(params.id, null));
  app.get<{ Querystring: { min_offset?: string; limit?: string } }>('/sessions/:id/events', async ({ query, headers }, reply) => {
    const from = Number(query.min_offset ?? 0);
    readFrom.push(from);
    return headers.accept?.includes('text/event-stream') ? stream(from, reply) : log.slice(from, from + Number(query.limit ?? 200));
  });
  app.post<{ Body: { text: string } }>('/sessions/:id/events', { bodyLimit: 4_000_000 }, async ({ body }, reply) => {
    if (refusal !== null) return reply.code(refusal.status).send(refusal.body);
    const [event] = append({ kind: 'user_message', id: `evt_${log.length}`, source: 'customer', text: body.text });
    return reply.code(201).send(event);
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    readFrom,
    append: (...events) => void append(...events),
    send: (event, data) => {
      for (const one of streams) one.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    },
    refuseMessages: (status, body) => {
      refusal = { status, body };
    },
    close: async () => {
      for (const one of streams) one.destroy();
      await app.close();
    },
  };
}

function written(event: AnyEvent): string {
  return `id: ${event.offset}\nevent: ${event['kind']}\ndata: ${JSON.stringify(event)}\n\n`;
}
