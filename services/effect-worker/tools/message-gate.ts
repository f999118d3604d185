import { setImmediate as nextTick } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { jsonIn } from '#shared/json-in.ts';
import { RefillingBudget } from './refilling-budget.ts';
import { mayNeedStructuredText, withStructuredText } from './structured-text.ts';
import { ToolFailure } from './tool-failure.ts';
import { MAX_VALUES, ValueCount } from './value-count.ts';

/** The foreign (not JSON-RPC) message that ends a stream. Fewer are tolerated: proxies send events of their own. */
const MAX_FOREIGN_MESSAGES = 10;
/** Bytes of a stream beside the answer: progress, log messages, keep-alive comments. */
const MAX_BYTES_BESIDE_RESPONSE = 1_048_576;
/** Bytes handled per tick: some hundred messages, which take the client about 10 ms. */
const SLICE_BYTES = 16_384;
/** A standing stream has no time limit, so its budgets refill. One slice a second takes the client about a hundredth of the event loop. */
const STANDING_BYTES_PER_SECOND = SLICE_BYTES;
/** Refill of its budget of foreign messages: one a minute. */
const STANDING_FOREIGN_PER_SECOND = 1 / 60;
/** Of a JSON-RPC batch. Only one answer is awaited at a time, and all entries are checked in one tick. */
const MAX_BATCH_BYTES = 65_536;
/** The only notifications that the client handles; it would validate all others too. */
const PROGRESS = 'notifications/progress';
const HANDLED = new Set<unknown>([PROGRESS, 'notifications/tools/list_changed', 'notifications/subscriptions/acknowledged']);
/** Throttles progress, which only shows that a call is running. The first message passes. */
const PROGRESS_EVERY_MS = 100;
/** Messages beside the answer that the client gets per minute; each takes it about 0.1 ms. */
const MAX_MESSAGES_PER_MINUTE = 1_000;
const MINUTE_MS = 60_000;
/** Bounds of the reconnection delay that the server asks for. */
const RETRY_MS = { least: 1_000, most: 60_000 };

const NOTHING = new Uint8Array();

/** Filters a response body before the MCP client reads it. */
export interface BodyGate {
  /** The bytes to pass on, in slices, one per tick; empty where a slice of the body holds nothing of use. @throws ToolFailure `unreadable` when the body must end here */
  pass(chunk: Uint8Array): AsyncIterable<Uint8Array>;
  /** What is left to pass on when the body has ended. */
  end(): Uint8Array;
}

/**
 * Passes the JSON-RPC messages of an event stream, each as its own event, and drops notifications that the client does not handle. The
 * client would validate all that has arrived in one go and make an error of each foreign message, without a bound.
 *
 * @param requestId of the request that the stream is to answer; undefined for a standing stream
 * @param nowMs monotonic
 */
export function messageGate(requestId: unknown, nowMs: () => number = () => performance.now()): BodyGate {
  const isStanding = requestId === undefined;
  const bounds = isStanding ? new StandingStreamBounds(nowMs) : new ResponseBounds(requestId);
  const sideMessages = new SideMessageLimit(nowMs);
  const foreign = new RefillingBudget({ capacity: MAX_FOREIGN_MESSAGES - 1, perSecond: isStanding ? STANDING_FOREIGN_PER_SECOND : 0, nowMs });
  const decoder = new TextDecoder();
  let events: EventSourceMessage[] = [];
  let retryMs: number | null = null;
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onError: ({ type }) => {
      if (type === 'max-buffer-size-exceeded') throw unreadable(`the tool server sends an event of more than ${MAX_BYTES_BESIDE_RESPONSE} characters`);
    },
    // A response is bounded in all. An incomplete event of a standing stream may stay in the buffer for any time.
    ...(isStanding ? { maxBufferSize: MAX_BYTES_BESIDE_RESPONSE } : {}),
    onRetry: (requestedMs) => {
      retryMs = Math.min(Math.max(requestedMs, RETRY_MS.least), RETRY_MS.most);
    },
  });

  function forwarded(event: EventSourceMessage): string {
    if (event.data === '') return event.id === undefined ? '' : `id: ${event.id}\ndata:\n\n`;
    // The client ignores other types.
    if ((event.event ?? 'message') !== 'message') return '';
    // No text has more values than characters.
    if (event.data.length > MAX_VALUES) new ValueCount().add(Buffer.from(event.data));
    const message = jsonIn(event.data);
    if (!isRpcMessage(message)) {
      if (!foreign.use(1)) throw unreadable('the tool server sends messages that are not JSON-RPC');
      return '';
    }
    const isAnswer = bounds.note(message, event.data);
    if (!isAnswer && !sideMessages.passes(message)) return event.id === undefined ? '' : `id: ${event.id}\ndata:\n\n`;
    const id = event.id === undefined ? '' : `id: ${event.id}\n`;
    const data = isAnswer ? withStructuredText(event.data) : event.data;
    return `${id}data: ${data.replaceAll('\n', '\ndata: ')}\n\n`;
  }

  return {
    async *pass(chunk) {
      for (let at = 0; at < chunk.byteLength; at += SLICE_BYTES) {
        const slice = chunk.subarray(at, at + SLICE_BYTES);
        const text = decoder.decode(slice, { stream: true });
        parser.feed(text);
        const complete = events;
        events = [];
        const out = complete.map(forwarded).join('');
        bounds.read(slice.byteLength, text, complete.length > 0);
        yield Buffer.from(out === '' || retryMs === null ? out : `retry: ${retryMs}\n${out}`);
        await nextTick(); // no fail point: waits
      }
    },
    end: () => NOTHING,
  };
}

class SideMessageLimit {
  readonly #nowMs: () => number;
  #progressAtMs = Number.NEGATIVE_INFINITY;
  #minuteAtMs = Number.NEGATIVE_INFINITY;
  #inMinute = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** @throws ToolFailure `unreadable` */
  passes(message: object): boolean {
    const atMs = this.#nowMs();
    if ('method' in message && !('id' in message)) {
      if (!HANDLED.has(message.method)) return false;
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
  /** @returns whether it is the answer */
  note(message: object, data: string): boolean;
  /** @throws ToolFailure `unreadable` above the bound */
  read(bytes: number, text: string, isEventComplete: boolean): void;
}

class StandingStreamBounds implements StreamBounds {
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

/** Bounds the bytes beside the answer. Pending data may become the answer: only the response's own budget bounds it. */
class ResponseBounds implements StreamBounds {
  readonly #requestId: unknown;
  #totalBytes = 0;
  #responseBytes = 0;
  /** Since the last complete event. */
  #pendingBytes = 0;
  /** Whether they contain a `data:` line. */
  #isPendingData = false;
  /** Start of the incomplete line, enough to recognise its field. */
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

/** Bounds the values of a JSON body, and the size of a batch. The body passes when it is complete: the client parses no part of it before. */
export function jsonGate(): BodyGate {
  const values = new ValueCount();
  let first: string | null = null;
  let sizeBytes = 0;
  let pieces: Uint8Array[] = [];
  return {
    async *pass(chunk) {
      sizeBytes += chunk.byteLength;
      first ??= /[^\s\ufeff]/.exec(Buffer.from(chunk.subarray(0, SLICE_BYTES)).toString())?.[0] ?? null;
      if (first === '[' && sizeBytes > MAX_BATCH_BYTES) throw unreadable(`the tool server answers with a list of more than ${MAX_BATCH_BYTES} bytes`);
      values.add(chunk);
      pieces.push(chunk);
      yield NOTHING;
    },
    end() {
      const body = Buffer.concat(pieces);
      pieces = [];
      const json = body.toString();
      // The client reports what is no JSON.
      if (!mayNeedStructuredText(json) || !isJson(json)) return body;
      const exact = withStructuredText(json);
      return exact === json ? body : Buffer.from(exact);
    },
  };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function unreadable(message: string): ToolFailure {
  return new ToolFailure('unreadable', message, { sent: true });
}

/** The client validates the rest. */
function isRpcMessage(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || !('jsonrpc' in value) || value.jsonrpc !== '2.0') return false;
  return ('method' in value && typeof value.method === 'string') || ('id' in value && ('result' in value || 'error' in value));
}
