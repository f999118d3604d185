import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type ReadEventsQuery, readEventsQuery } from '#shared/contracts/agent/read-events.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { PacedSseWriter } from '#shared/http-server/paced-sse-writer.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { Cancellation } from '../cancellation.ts';
import type { EventFeeds } from '../feed/event-feeds.ts';
import { longPoll } from '../feed/long-poll.ts';
import { pageBody } from '../feed/page-body.ts';
import type { EventFilter, LogPage, SessionLog } from '../feed/session-log.ts';
import { limits, type Waits } from '../limits.ts';
import type { OpenReaders } from '../open-readers.ts';
import { invalidField, noSuchSession } from '../plugins/error-reply.ts';
import { BACKOFF_HEADER, EMPTY_BACKOFF_SECONDS, type PollingBackoff } from '../plugins/polling-backoff.ts';
import type { Deltas } from '../relay/deltas.ts';
import { type RelaySource, relayEvents } from '../relay/relay-events.ts';
import { checkedSessionId } from './session-id.ts';

export interface ReadEventsDeps {
  sessionLog: SessionLog;
  feeds: EventFeeds;
  deltas: Deltas | null;
  polls: OpenReaders;
  streams: OpenReaders;
  backoff: PollingBackoff;
  waits: Waits;
  log: Log;
}

/** GET /sessions/:session_id/events: a JSON array of events, by long-poll; with `Accept: text/event-stream` an endless stream. */
export function readEvents(deps: ReadEventsDeps): FastifyPluginAsyncZod {
  const params = z.object({ session_id: z.string() });
  return async (app) => {
    app.get('/sessions/:session_id/events', { schema: { params, querystring: readEventsQuery }, onSend: withBackoff }, async (request, reply) => {
      const sessionId = checkedSessionId(request.params.session_id);
      if (wantsStream(request.headers)) return streamEvents(deps, sessionId, request, reply);
      return pollEvents(deps, sessionId, request, reply);
    });
  };
}

type EventsRequest = Pick<FastifyRequest, 'headers' | 'ip'> & { query: ReadEventsQuery };

async function pollEvents({ sessionLog, feeds, polls, backoff, waits }: ReadEventsDeps, sessionId: string, request: EventsRequest, reply: FastifyReply) {
  const { min_offset: minOffset, limit, wait_for_data: waitSeconds } = request.query;
  const waitMs = waitSeconds === undefined ? waits.pollMs : waitSeconds * 1_000;
  const cancellation = new Cancellation();
  const onClose = () => cancellation.cancel();
  const leave = polls.enter(onClose);
  reply.raw.once('close', onClose);
  // A client that disconnected earlier emits no further `close`.
  if (reply.raw.destroyed) onClose();
  try {
    const events = await longPoll({ feeds, sessionLog }, sessionId, { filter: filterOf(request.query), minOffset, limit, waitMs }, cancellation);
    if (events === null) throw noSuchSession();
    const isEmpty = events.count === 0;
    if (!isEmpty) reply.header(BACKOFF_HEADER, String(await backoff.afterEvents(sessionId, request.ip, { minOffset, waited: waitMs > 0 })));
    else if (waitMs === 0) reply.header(BACKOFF_HEADER, String(await backoff.afterEmpty(sessionId, request.ip)));
    // Clients of other engines expect 504 when an explicit wait times out.
    if (isEmpty && waitSeconds !== undefined && waitSeconds > 0 && !cancellation.isCancelled)
      throw new SwitchyardError('session.nothing_new', 'no event came in the time given by wait_for_data');
    return reply.type('application/json; charset=utf-8').send(pageBody(events.pieces));
  } finally {
    reply.raw.off('close', onClose);
    leave();
  }
}

async function streamEvents(deps: ReadEventsDeps, sessionId: string, request: EventsRequest, reply: FastifyReply) {
  const filter = filterOf(request.query);
  const from = resumePoint(request.headers) ?? request.query.min_offset;
  const ended = new AbortController();
  const releases = [deps.streams.enter(() => ended.abort())];
  try {
    const reader = deps.feeds.read(sessionId);
    releases.push(() => reader.release());
    const deltas = showsReplies(filter) ? (deps.deltas?.read(sessionId) ?? null) : null;
    releases.push(() => deltas?.release());
    const source = { sessionLog: deps.sessionLog, sessionId, filter, reader, deltas };
    const [first] = await Promise.all([firstPage(source, from), deltas?.ready()]);
    if (first === null) throw noSuchSession();
    await stream(deps, source, { first, reply, signal: ended.signal });
    return reply;
  } finally {
    for (const release of releases.reverse()) release();
  }
}

/** Resolves at the end of the stream. */
async function stream({ waits, log }: ReadEventsDeps, source: RelaySource, { first, reply, signal }: Streaming): Promise<void> {
  reply.hijack();
  const { heartbeatMs, stalledMs } = waits;
  // A client must not delay a drain by bytes that it does not read: it has as long to finish as to catch up.
  const sending = { unsentBytes: limits.unsentBytes, isStrict: true as const, pieceBytes: limits.ssePieceBytes, heartbeatMs, stalledMs, finishMs: stalledMs };
  const client = new PacedSseWriter(reply.raw, { ...textHeaders(reply), [BACKOFF_HEADER]: '0' }, sending);
  const onDrain = () => client.end('the server is shutting down; resume with Last-Event-ID');
  signal.addEventListener('abort', onDrain);
  if (signal.aborted) onDrain();
  try {
    await relayEvents(source, client, first);
  } catch (error) {
    // The head is sent, so an error can only end the stream. The client resumes.
    log.warn({ err: error, session_id: source.sessionId }, 'an event stream was ended by an error');
    client.end('the stream was interrupted; resume with Last-Event-ID');
  }
}

interface Streaming {
  first: LogPage | number;
  reply: FastifyReply;
  signal: AbortSignal;
}

/** The offset when the feed knows that there are no events yet; null: no such session. */
async function firstPage({ sessionLog, sessionId, filter, reader }: RelaySource, from: number): Promise<LogPage | number | null> {
  if (reader.head === null) await reader.ready();
  const before = reader.head;
  if (before !== null && from >= before) return from;
  const page = await sessionLog.read(sessionId, filter, from, limits.streamPageEvents);
  if (page !== null) reader.noteHead(page.head, before);
  return page;
}

function filterOf({ kinds, source, trace_id }: ReadEventsQuery): EventFilter {
  return { kinds: kinds ?? null, source: source ?? null, traceId: trace_id ?? null };
}

/** Deltas belong to assistant messages and carry no trace id: a filter on either excludes them. */
function showsReplies({ kinds, source, traceId }: EventFilter): boolean {
  return (kinds === null || kinds.includes('assistant_message')) && (source === null || source === 'ai_agent') && traceId === null;
}

/** A header that names both types alike asks for a stream: a client that can't read one does not name it. */
function wantsStream({ accept = '' }: IncomingHttpHeaders): boolean {
  const stream = weightOf('text/event-stream', accept);
  return stream > 0 && stream >= weightOf('application/json', accept);
}

/** From 0 to 1; 0 where the type is not named. */
function weightOf(wanted: string, accept: string): number {
  const weights = accept.split(',').flatMap((range) => {
    const [type, ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    if (type !== wanted) return [];
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice('q='.length);
    return [weight === undefined ? 1 : Number(weight) || 0];
  });
  return Math.max(0, ...weights);
}

/** Null without the header. @throws `request.invalid` */
function resumePoint(headers: IncomingHttpHeaders): number | null {
  const id = headers['last-event-id'];
  if (id === undefined || id === '') return null;
  if (typeof id !== 'string' || !/^\d{1,15}$/.test(id)) throw invalidField('/last-event-id', 'must be the offset of the last event that was received');
  return Number(id) + 1;
}

function textHeaders(reply: FastifyReply): Record<string, string> {
  return Object.fromEntries(Object.entries(reply.getHeaders()).map(([name, value]) => [name, String(value)]));
}

/** On every reply of this route, errors included. */
function withBackoff(_request: FastifyRequest, reply: FastifyReply, _payload: unknown, done: () => void): void {
  if (!reply.hasHeader(BACKOFF_HEADER)) reply.header(BACKOFF_HEADER, String(EMPTY_BACKOFF_SECONDS));
  done();
}
