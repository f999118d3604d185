/**
 * What a worker sends on `tok.<origin>.<call>`. The worker makes the client's bytes once. A gateway reads the first byte and the numbers, and writes the rest
 * unchanged; around a text it also writes the template (frame-reader.ts).
 *
 *   o  `o` + SSE bytes                              opens the stream without content (role, debug)
 *   c  `c` + SSE bytes                              content: the commit point, no fallback from here on
 *   t  `t<attempt>.<seq>\n` + JSON string           content that is one text; sent only after a `c` with the same head
 *   d  `d` + SSE bytes                              finish, usage, [DONE]: the last frame of a stream that succeeded
 *   e  `e` + status + `\n` + JSON body + `\n` + SSE bytes   the last frame of a stream that failed: the body if no header was sent yet, else the bytes
 *   b  `b` + status + `\n` + JSON body              the only frame of a call that wants its answer whole
 *
 * SSE bytes begin with `id: <call>.<attempt>.<seq>\n`. The attempt is the delivery number of the item; seq counts from 1 in it. The second event of a frame
 * has the id `<call>.<attempt>.<seq>.2`, and so on: a connection may break between two events of one frame.
 */
export type Frame = ReadyFrame | { kind: 'text'; attempt: number; seq: number; json: Uint8Array };

/** A frame that contains its bytes for the client. */
export type ReadyFrame =
  | { kind: 'open' | 'content' | 'done'; attempt: number; seq: number; sse: Uint8Array }
  | { kind: 'error'; attempt: number; seq: number; status: number; body: Uint8Array; sse: Uint8Array }
  | { kind: 'body'; status: number; body: Uint8Array };

const NEWLINE = 10;
const DOT = 46;
const ZERO = 48;
/** The most digits of an attempt, sequence or status. */
const MAX_DIGITS = 9;
const ID_FIELD = 'id: ';
/** Event lines are not empty, so it occurs only between events. */
const EVENT_END = '\n\n';
const BETWEEN_EVENTS = /\n\n(?!$)/g;
const KINDS = { 116: 'text', 111: 'open', 99: 'content', 100: 'done', 101: 'error', 98: 'body' } as const;
const LETTERS = { open: 'o', content: 'c', done: 'd' } as const;

/** `events` is one or more whole events, each closed by an empty line. */
export function sseFrame(kind: 'open' | 'content' | 'done', callId: string, attempt: number, seq: number, events: string): Uint8Array {
  const address = `${callId}.${attempt}.${seq}`;
  return Buffer.from(`${LETTERS[kind]}id: ${address}\n${numbered(events, address)}`, 'utf8');
}

/** A text without the template of its attempt. `json` is one JSON string. */
export function textFrame(attempt: number, seq: number, json: string): Uint8Array {
  return Buffer.from(`t${attempt}.${seq}\n${json}`, 'utf8');
}

/** Adds an id to each event but the first, which has the frame's. */
function numbered(events: string, address: string): string {
  // Most frames hold one event.
  if (events.indexOf(EVENT_END) === events.length - EVENT_END.length) return events;
  let index = 1;
  return events.replace(BETWEEN_EVENTS, () => {
    index += 1;
    return `${EVENT_END}id: ${address}.${index}\n`;
  });
}

/** The bytes after the first `events` events, as a view; empty for none. */
export function behindEvents(sse: Uint8Array, events: number): Uint8Array {
  const bytes = Buffer.from(sse.buffer, sse.byteOffset, sse.byteLength);
  let at = 0;
  for (let passed = 0; passed < events; passed += 1) {
    const end = bytes.indexOf(EVENT_END, at);
    if (end < 0) return bytes.subarray(bytes.length);
    at = end + EVENT_END.length;
  }
  return bytes.subarray(at);
}

/** `body` is one line of JSON. */
export function errorFrame(callId: string, attempt: number, seq: number, status: number, body: string, events: string): Uint8Array {
  return Buffer.from(`e${status}\n${body}\nid: ${callId}.${attempt}.${seq}\n${events}`, 'utf8');
}

export function bodyFrame(status: number, body: string): Uint8Array {
  return Buffer.from(`b${status}\n${body}`, 'utf8');
}

/** The frame's bytes are views, not copies. Null when they are not a frame of this call. */
export function readFrame(callId: string, bytes: Uint8Array): Frame | null {
  const kind = KINDS[bytes[0] as keyof typeof KINDS];
  if (kind === undefined) return null;
  if (kind === 'text') {
    const lineEnd = bytes.indexOf(NEWLINE);
    const address = readNumbers(bytes, 1, lineEnd);
    return address && { kind, attempt: address.attempt, seq: address.seq, json: bytes.subarray(lineEnd + 1) };
  }
  if (kind === 'open' || kind === 'content' || kind === 'done') {
    const address = readAddress(callId, bytes, 1);
    return address && { kind, attempt: address.attempt, seq: address.seq, sse: bytes.subarray(1) };
  }
  const statusEnd = bytes.indexOf(NEWLINE);
  const status = readNumber(bytes, 1, statusEnd);
  if (status === null) return null;
  if (kind === 'body') return { kind, status, body: bytes.subarray(statusEnd + 1) };
  const bodyEnd = bytes.indexOf(NEWLINE, statusEnd + 1);
  if (bodyEnd < 0) return null;
  const address = readAddress(callId, bytes, bodyEnd + 1);
  return (
    address && { kind, attempt: address.attempt, seq: address.seq, status, body: bytes.subarray(statusEnd + 1, bodyEnd), sse: bytes.subarray(bodyEnd + 1) }
  );
}

/** The numbers of the `id:` line at `lineAt`; null without one, or for another call's. */
function readAddress(callId: string, bytes: Uint8Array, lineAt: number): { attempt: number; seq: number } | null {
  if (!beginsWithIdOf(callId, bytes, lineAt)) return null;
  const attemptAt = lineAt + ID_FIELD.length + callId.length + 1;
  return readNumbers(bytes, attemptAt, bytes.indexOf(NEWLINE, attemptAt));
}

function readNumbers(bytes: Uint8Array, from: number, end: number): { attempt: number; seq: number } | null {
  const attemptEnd = bytes.indexOf(DOT, from);
  const attempt = readNumber(bytes, from, attemptEnd);
  const seq = readNumber(bytes, attemptEnd + 1, end);
  return attempt === null || seq === null || attempt < 1 || seq < 1 ? null : { attempt, seq };
}

/** Ids are ASCII. */
function beginsWithIdOf(callId: string, bytes: Uint8Array, lineAt: number): boolean {
  const callAt = lineAt + ID_FIELD.length;
  for (let index = 0; index < ID_FIELD.length; index += 1) if (bytes[lineAt + index] !== ID_FIELD.charCodeAt(index)) return false;
  for (let index = 0; index < callId.length; index += 1) if (bytes[callAt + index] !== callId.charCodeAt(index)) return false;
  return bytes[callAt + callId.length] === DOT;
}

/** Null when it is empty, has a non-digit, or more digits than we send. */
function readNumber(bytes: Uint8Array, from: number, end: number): number | null {
  if (end <= from || end - from > MAX_DIGITS) return null;
  let number = 0;
  for (let at = from; at < end; at += 1) {
    const digit = (bytes[at] as number) - ZERO;
    if (digit < 0 || digit > 9) return null;
    number = number * 10 + digit;
  }
  return number;
}
