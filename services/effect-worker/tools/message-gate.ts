import { setImmediate as nextTick } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { jsonIn } from '#shared/json-in.ts';
import { RefillingBudget } from './refilling-budget.ts';
import { ToolFailure } from './tool-failure.ts';
import { MAX_VALUES, ValueCount } from './value-count.ts';

/** The message of a stream that ends it when so many are no JSON-RPC. A few are forgiven: proxies and libraries have events of their own. */
const MAX_FOREIGN_MESSAGES = 10;
/** What a stream may bring beside the answer: progress, log messages, comments that keep it open. */
const MAX_BYTES_BESIDE_RESPONSE = 1_048_576;
/** What is read in one turn of the event loop: some hundred messages, which take the client some 10 ms. */
const SLICE_BYTES = 16_384;
/**
 * A standing stream has no answer whose time limit ends it: its bounds refill, so that it stands for as long as it brings little. One slice
 * a second takes the client some hundredth of the event loop.
 */
const STANDING_BYTES_PER_SECOND = SLICE_BYTES;
/** What it may bring that is no JSON-RPC, beyond the first few: one message a minute. */
const STANDING_FOREIGN_PER_SECOND = 1 / 60;
/** A JSON body that is a list. Only one answer is asked for at a time, and each entry of a list is checked in the same turn. */
const MAX_BATCH_BYTES = 65_536;
/** The only notifications that the client does anything with. It would check each of the others against all forms that a message may have. */
const PROGRESS = 'notifications/progress';
const LIST_CHANGED = 'notifications/tools/list_changed';
/** Progress only says that a call is still going on, with its first message and with one now and then. */
const PROGRESS_EVERY_MS = 100;
/** Requests of the server and other messages beside its answer that go on to the client within a minute; it takes some 0.1 ms for each. */
const MAX_MESSAGES_PER_MINUTE = 1_000;
const MINUTE_MS = 60_000;
/** Between the end of a stream and its resumption, whatever the server asks for. */
const RETRY_MS = { least: 1_000, most: 60_000 };

/** What a body passes through before the MCP client reads it. */
export interface BodyGate {
  /** The bytes that may go on, in slices; the event loop turns between them. @throws ToolFailure `unreadable` when the body is to end here */
  pass(chunk: Uint8Array): AsyncIterable<Uint8Array>;
}

/**
 * Lets only JSON-RPC messages of an event stream through, each as an event of its own. The client parses every event and checks it against
 * each form that a message may have, in one go for all that has arrived: of what is none it only makes an error, however many there are.
 * Notifications that it has no use for stay behind as well.
 *
 * @param requestId of the request that the stream is to answer; undefined for a standing stream, which answers none
 * @param nowMs a clock that never goes back
 */
export function messageGate(requestId: unknown, nowMs: () => number = () => performance.now()): BodyGate {
  const isStanding = requestId === undefined;
  const bounds = isStanding ? new StandingWatch(nowMs) : new ResponseWatch(requestId);
  const beside = new BesideAnswer(nowMs);
  const foreign = new RefillingBudget({ capacity: MAX_FOREIGN_MESSAGES - 1, perSecond: isStanding ? STANDING_FOREIGN_PER_SECOND : 0, nowMs });
  const decoder = new TextDecoder();
  let events: EventSourceMessage[] = [];
  let retryMs: number | null = null;
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw unreadable(`the tool server sends an event of more than ${MAX_BYTES_BESIDE_RESPONSE} characters`);
    },
    // Of an answer the bound is that of every answer; a standing stream may take any time over an event, which is kept until it is complete.
    ...(isStanding ? { maxBufferSize: MAX_BYTES_BESIDE_RESPONSE } : {}),
    onRetry: (requestedMs) => {
      retryMs = Math.min(Math.max(requestedMs, RETRY_MS.least), RETRY_MS.most);
    },
  });

  function goOn(event: EventSourceMessage): string {
    if (event.data === '') return event.id === undefined ? '' : `id: ${event.id}\ndata:\n\n`;
    // Other kinds of events are nothing that the client looks at.
    if ((event.event ?? 'message') !== 'message') return '';
    // No text has more values than characters.
    if (event.data.length > MAX_VALUES) new ValueCount().add(Buffer.from(event.data));
    const message = jsonIn(event.data);
    if (!isRpcMessage(message)) {
      if (!foreign.use(1)) throw unreadable('the tool server sends messages that are no JSON-RPC');
      return '';
    }
    const isAnswer = bounds.note(message, event.data);
    if (!isAnswer && !beside.goesOn(message)) return event.id === undefined ? '' : `id: ${event.id}\ndata:\n\n`;
    const id = event.id === undefined ? '' : `id: ${event.id}\n`;
    return `${id}data: ${event.data.replaceAll('\n', '\ndata: ')}\n\n`;
  }

  return {
    async *pass(chunk) {
      for (let at = 0; at < chunk.byteLength; at += SLICE_BYTES) {
        const slice = chunk.subarray(at, at + SLICE_BYTES);
        const text = decoder.decode(slice, { stream: true });
        parser.feed(text);
        const complete = events;
        events = [];
        const out = complete.map(goOn).join('');
        bounds.read(slice.byteLength, text, complete.length > 0);
        if (out !== '') yield Buffer.from(retryMs === null ? out : `retry: ${retryMs}\n${out}`);
        await nextTick(); // no fail point: waits
      }
    },
  };
}

/** Chooses what goes on to the client of the messages beside an answer. */
class BesideAnswer {
  readonly #nowMs: () => number;
  #progressAtMs = Number.NEGATIVE_INFINITY;
  #minuteAtMs = Number.NEGATIVE_INFINITY;
  #inMinute = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** @throws ToolFailure `unreadable` when there are too many */
  goesOn(message: object): boolean {
    const atMs = this.#nowMs();
    if ('method' in message && !('id' in message)) {
      if (message.method !== PROGRESS && message.method !== LIST_CHANGED) return false;
      if (message.method === PROGRESS && atMs - this.#progressAtMs < PROGRESS_EVERY_MS) return false;
      if (message.method === PROGRESS) this.#progressAtMs = atMs;
    }
    if (atMs - this.#minuteAtMs >= MINUTE_MS) {
      this.#minuteAtMs = atMs;
      this.#inMinute = 0;
    }
    this.#inMinute += 1;
    if (this.#inMinute > MAX_MESSAGES_PER_MINUTE) throw unreadable(`the tool server sends more than ${MAX_MESSAGES_PER_MINUTE} messages beside its answer`);
    return true;
  }
}

interface StreamBounds {
  /** A message that is JSON-RPC. @returns whether it is the answer */
  note(message: object, data: string): boolean;
  /** What was read. @throws ToolFailure `unreadable` when it is too much */
  read(bytes: number, text: string, isEventComplete: boolean): void;
}

/** Bounds how fast a stream brings what it was not asked for. */
class StandingWatch implements StreamBounds {
  readonly #budget: RefillingBudget;

  constructor(nowMs: () => number) {
    this.#budget = new RefillingBudget({ capacity: MAX_BYTES_BESIDE_RESPONSE, perSecond: STANDING_BYTES_PER_SECOND, nowMs });
  }

  note(): boolean {
    return false;
  }

  read(bytes: number): void {
    if (!this.#budget.use(bytes))
      throw unreadable(`the tool server sends more than ${MAX_BYTES_BESIDE_RESPONSE} bytes beside its answers, and ${STANDING_BYTES_PER_SECOND} each second`);
  }
}

/** Bounds what a stream brings beside its answer. What may become the answer yet has the bound of every answer. */
class ResponseWatch implements StreamBounds {
  readonly #requestId: unknown;
  #totalBytes = 0;
  #responseBytes = 0;
  /** Since the last event that was complete. */
  #pendingBytes = 0;
  /** Whether a line of data stands in them. */
  #isPendingData = false;
  /** As much of the line that is not complete as shows what it is. */
  #lineHead = '';

  constructor(requestId: unknown) {
    this.#requestId = requestId;
  }

  note(message: object, data: string): boolean {
    if (!('id' in message) || message.id !== this.#requestId || 'method' in message) return false;
    this.#responseBytes += Buffer.byteLength(data);
    return true;
  }

  read(bytes: number, text: string, isEventComplete: boolean): void {
    const tail = isEventComplete
      ? text.slice(Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\n\r\n'), text.lastIndexOf('\r\r')) + 1)
      : this.#lineHead + text;
    this.#totalBytes += bytes;
    this.#pendingBytes = isEventComplete ? Math.min(bytes, Buffer.byteLength(tail)) : this.#pendingBytes + bytes;
    this.#isPendingData = /^data:/m.test(tail) || (!isEventComplete && this.#isPendingData);
    this.#lineHead = tail.slice(Math.max(tail.lastIndexOf('\n'), tail.lastIndexOf('\r')) + 1).slice(0, 'data:'.length + 1);
    const besideBytes = this.#totalBytes - this.#responseBytes - (this.#isPendingData ? this.#pendingBytes : 0);
    if (besideBytes > MAX_BYTES_BESIDE_RESPONSE) throw unreadable(`the tool server sends more than ${MAX_BYTES_BESIDE_RESPONSE} bytes beside its answer`);
  }
}

/** Bounds the values of a JSON body, and the size of one that is a list of messages; that of one message has the bound of every answer. */
export function jsonGate(): BodyGate {
  const values = new ValueCount();
  let first: string | null = null;
  let sizeBytes = 0;
  return {
    async *pass(chunk) {
      sizeBytes += chunk.byteLength;
      first ??= /[^\s\ufeff]/.exec(Buffer.from(chunk.subarray(0, SLICE_BYTES)).toString())?.[0] ?? null;
      if (first === '[' && sizeBytes > MAX_BATCH_BYTES) throw unreadable(`the tool server answers with a list of more than ${MAX_BATCH_BYTES} bytes`);
      values.add(chunk);
      yield chunk;
    },
  };
}

function unreadable(message: string): ToolFailure {
  return new ToolFailure('unreadable', message, { sent: true });
}

/** Whether it has the outline of a message. Whether it is a right one the client sees. */
function isRpcMessage(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || !('jsonrpc' in value) || value.jsonrpc !== '2.0') return false;
  return ('method' in value && typeof value.method === 'string') || ('id' in value && ('result' in value || 'error' in value));
}
