import { linkedAbort } from './abort.ts';
import { clientError } from './agent-error.ts';
import type { AgentEvent } from './api.ts';
import { type Connection, openRequest } from './http.ts';
import type { ReplyPiece } from './open-replies.ts';
import { type SseEvent, SseParser } from './sse-parser.ts';

/** `open`: the first bytes are there. */
export type StreamItem = { type: 'open' } | { type: 'event'; event: AgentEvent } | { type: 'piece'; piece: ReplyPiece };

/**
 * One connection to the stream of a session's events. Ends when the server ends it.
 *
 * @param after offset of the last event that the reader has; -1: none
 * @throws AgentError: `client.no_stream` when the answer is no stream or sends no byte, as behind a proxy that buffers; `client.timeout` for silence
 */
export async function* eventStream(connection: Connection, sessionId: string, after: number, signal: AbortSignal | undefined): AsyncGenerator<StreamItem> {
  const { controller, release } = linkedAbort(signal);
  const { firstByteMs, silenceMs } = connection.timings;
  const noStream = clientError('client.no_stream', `the stream of events sent nothing within ${firstByteMs} ms`);
  const silent = clientError('client.timeout', `the stream of events was silent for ${silenceMs} ms`);
  /** Rejects what is under way; a half-open connection never ends by itself. */
  const bounded = async <Value>(ms: number, error: Error, work: Promise<Value>): Promise<Value> => {
    const timer = setTimeout(() => controller.abort(error), ms);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  };
  try {
    const reader = await bounded(firstByteMs, noStream, openStream(connection, sessionId, after, controller.signal));
    const decoder = new TextDecoder();
    const parser = new SseParser();
    let isOpen = false;
    for (;;) {
      const piece = await bounded(isOpen ? silenceMs : firstByteMs, isOpen ? silent : noStream, readPiece(reader, controller.signal));
      if (piece === null) return;
      if (!isOpen) yield { type: 'open' };
      isOpen = true;
      for (const event of parsed(parser, decoder.decode(piece, { stream: true }))) {
        const item = itemOf(event);
        if (item !== null) yield item;
      }
    }
  } finally {
    release();
    controller.abort();
  }
}

async function openStream(connection: Connection, sessionId: string, after: number, signal: AbortSignal): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const path = `/sessions/${encodeURIComponent(sessionId)}/events${after < 0 ? '' : `?min_offset=${after + 1}`}`;
  const headers = { accept: 'text/event-stream', ...(after >= 0 && { 'last-event-id': String(after) }) };
  const response = await openRequest(connection, { method: 'GET', path, headers }, signal);
  const type = response.headers.get('content-type') ?? '';
  if (response.body === null || !type.startsWith('text/event-stream')) throw clientError('client.no_stream', `the answer is ${type || 'empty'}, no stream`);
  return response.body.getReader();
}

/** Null: the server has ended the stream. Does not outlive an abort, whatever the stream below does. */
function readPiece(reader: ReadableStreamDefaultReader<Uint8Array>, signal: AbortSignal): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort);
    reader
      .read()
      .then(({ done, value }) => resolve(done ? null : value))
      .catch((cause: unknown) => reject(signal.aborted ? signal.reason : clientError('client.no_answer', 'the stream of events broke off', { cause })))
      .finally(() => signal.removeEventListener('abort', onAbort));
    if (signal.aborted) onAbort();
  });
}

function parsed(parser: SseParser, text: string): SseEvent[] {
  try {
    return parser.feed(text);
  } catch (cause) {
    throw clientError('client.bad_answer', 'the stream of events can not be read', { cause });
  }
}

/** Null: an event that this version does not know. */
function itemOf({ id, event, data }: SseEvent): StreamItem | null {
  const value = jsonOf(data);
  if (event === 'delta' || event === 'snapshot') {
    const { message_id: messageId, seq, text = null, cancelled } = Object(value);
    if (typeof messageId !== 'string' || typeof seq !== 'number') return null;
    if (typeof text !== 'string' && cancelled !== true) return null;
    return { type: 'piece', piece: { kind: event, messageId, seq, text } };
  }
  return id === null ? null : { type: 'event', event: eventOf(value) };
}

/** @throws AgentError for what has no offset: passing it over would lose it */
export function eventOf(value: unknown): AgentEvent {
  const { kind, offset } = Object(value);
  if (typeof kind !== 'string' || !Number.isSafeInteger(offset)) throw clientError('client.bad_answer', 'an event has no kind or no offset');
  return value as AgentEvent;
}

function jsonOf(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw clientError('client.bad_answer', 'an event of the stream is no JSON', { cause });
  }
}
