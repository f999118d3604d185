/**
 * What a worker sends on `tok.<origin>.<call>`. The worker makes the client's bytes once. A gateway reads the first byte and the numbers, and writes the rest
 * unchanged; around a text it also writes the template (ordered-frames.ts).
 *
 *   o  `o` + SSE bytes                              opens the stream without content (role, debug)
 *   s  `s<bytes of the prefix>.<of the suffix>\n` + prefix + suffix + SSE bytes     content, and states the template of the texts that follow
 *   m  `m` + SSE bytes                              more content
 *   t  `t<attempt>.<seq>\n` + text                  what stands between prefix and suffix; sent only after an `s` of its attempt
 *   d  `d` + SSE bytes                              finish, usage, [DONE]: the last frame of a stream that succeeded
 *   e  `e` + status + `\n` + JSON body + `\n` + SSE bytes   the last frame of a stream that failed: the body if no header was sent yet, else the bytes
 *   b  `b` + status + `\n` + JSON body              the only frame of a call that wants its answer whole
 *   c  `c` + SSE bytes                              content that states no template, of calls without `surface` (of the release before)
 *
 * A capital letter is the same frame of a *logged* call: its answer will be in a session's log. Readers of the release before know no capital letters, nor
 * `s` and `m`. The letter alone says how long a frame is stored (retention.ts). Content is the commit point: no fallback from there on.
 *
 * SSE bytes begin with `id: <call>.<attempt>.<seq>\n`. The attempt is the delivery number of the item; where the broker counts deliveries, a
 * tag follows it (attempt-number.ts). seq counts from 1 in an attempt. The second event of a frame
 * has the id `<call>.<attempt>.<seq>.2`, and so on: a connection may break between two events of one frame.
 */
export type Frame = ReadyFrame | TextFrame;

export interface TextFrame {
  kind: 'text';
  attempt: number;
  seq: number;
  text: Uint8Array;
}

/** A frame that contains its bytes for the client. */
export type ReadyFrame = ContentFrame | OpenFrame | ErrorFrame | BodyFrame;

export interface OpenFrame {
  kind: 'open' | 'done';
  attempt: number;
  seq: number;
  sse: Uint8Array;
}

export interface ContentFrame {
  kind: 'content';
  attempt: number;
  seq: number;
  sse: Uint8Array;
  /** Null: one of an earlier frame holds. `unstated`: of the release before, whose texts have that of the chunks. */
  template: TemplateBytes | 'unstated' | null;
}

export interface ErrorFrame {
  kind: 'error';
  attempt: number;
  seq: number;
  status: number;
  body: Uint8Array;
  sse: Uint8Array;
}

export interface BodyFrame {
  kind: 'body';
  status: number;
  body: Uint8Array;
}

/** What stands before and behind each text of an attempt, from the end of the `id:` line to the end of the event. */
export interface TemplateBytes {
  prefix: Uint8Array;
  suffix: Uint8Array;
}

/** Where a frame stands. */
export interface FrameAddress {
  callId: string;
  attempt: number;
  seq: number;
  /** Its answer will be in a session's log. Absent: no. */
  isLogged?: boolean;
}

const NEWLINE = 10;
const DOT = 46;
const ZERO = 48;
/** The most digits of an attempt, sequence or status. */
const MAX_DIGITS = 9;
const ID_FIELD = 'id: ';
/** Event lines are not empty, so it occurs only between events. */
const EVENT_END = '\n\n';
const BETWEEN_EVENTS = /\n\n(?!$)/g;
/** Of the small letter. */
const KINDS = { 116: 'text', 109: 'content', 115: 'stating', 111: 'open', 100: 'done', 101: 'error', 98: 'body', 99: 'unstated' } as const;
const SMALL = 32;

/** `events` is one or more whole events, each closed by an empty line. `content` states no template. */
export function sseFrame(letter: 'o' | 'm' | 'd' | 'c', address: FrameAddress, events: string): Uint8Array {
  return Buffer.from(`${cased(letter, address)}${idLineOf(address)}${numbered(events, address)}`, 'utf8');
}

/** Content that states the template of the texts behind it. */
export function templateFrame(address: FrameAddress, { prefix, suffix }: { prefix: string; suffix: string }, events: string): Uint8Array {
  const head = `${cased('s', address)}${Buffer.byteLength(prefix)}.${Buffer.byteLength(suffix)}\n`;
  return Buffer.from(`${head}${prefix}${suffix}${idLineOf(address)}${numbered(events, address)}`, 'utf8');
}

/** `text` stands between the template's prefix and suffix. */
export function textFrame(address: FrameAddress, text: string): Uint8Array {
  return Buffer.from(`${address.isLogged === true ? 'T' : 't'}${address.attempt}.${address.seq}\n${text}`, 'utf8');
}

/** `body` is one line of JSON. */
export function errorFrame(address: FrameAddress, status: number, body: string, events: string): Uint8Array {
  return Buffer.from(`${cased('e', address)}${status}\n${body}\n${idLineOf(address)}${numbered(events, address)}`, 'utf8');
}

export function bodyFrame(status: number, body: string): Uint8Array {
  return Buffer.from(`b${status}\n${body}`, 'utf8');
}

function cased(letter: string, { isLogged = false }: FrameAddress): string {
  return isLogged ? letter.toUpperCase() : letter;
}

function idLineOf({ callId, attempt, seq }: FrameAddress): string {
  return `id: ${callId}.${attempt}.${seq}\n`;
}

/** Adds an id to each event but the first, which has the frame's. */
function numbered(events: string, { callId, attempt, seq }: FrameAddress): string {
  // Most frames hold one event.
  if (events.indexOf(EVENT_END) === events.length - EVENT_END.length) return events;
  let index = 1;
  return events.replace(BETWEEN_EVENTS, () => {
    index += 1;
    return `${EVENT_END}id: ${callId}.${attempt}.${seq}.${index}\n`;
  });
}

/** Whether it is the last frame of its call. */
export function isLastFrame(bytes: Uint8Array): boolean {
  const kind = KINDS[((bytes[0] as number) | SMALL) as keyof typeof KINDS];
  return kind === 'done' || kind === 'error' || kind === 'body';
}

/** The number of its events: of the empty lines that close them. */
export function eventsIn(sse: Uint8Array): number {
  const bytes = Buffer.from(sse.buffer, sse.byteOffset, sse.byteLength);
  let events = 0;
  for (let at = bytes.indexOf(EVENT_END); at >= 0; at = bytes.indexOf(EVENT_END, at + EVENT_END.length)) events += 1;
  return events;
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

/** The frame's bytes are views, not copies. Null when they are not a frame of this call. */
export function readFrame(callId: string, bytes: Uint8Array): Frame | null {
  const kind = KINDS[((bytes[0] as number) | SMALL) as keyof typeof KINDS];
  switch (kind) {
    case 'text': {
      const lineEnd = bytes.indexOf(NEWLINE);
      const address = readNumbers(bytes, 1, lineEnd);
      return address && { kind, attempt: address.first, seq: address.second, text: bytes.subarray(lineEnd + 1) };
    }
    case 'content':
      return readContent(callId, bytes, 1, null);
    case 'unstated':
      return readContent(callId, bytes, 1, kind);
    case 'stating':
      return readStating(callId, bytes);
    case 'open':
    case 'done': {
      const address = readAddress(callId, bytes, 1);
      return address && { kind, attempt: address.attempt, seq: address.seq, sse: bytes.subarray(1) };
    }
    case 'error':
    case 'body':
      return readWhole(kind, callId, bytes);
    case undefined:
      return null;
  }
}

function readContent(callId: string, bytes: Uint8Array, at: number, template: ContentFrame['template']): ContentFrame | null {
  const address = readAddress(callId, bytes, at);
  return address && { kind: 'content', attempt: address.attempt, seq: address.seq, sse: bytes.subarray(at), template };
}

function readStating(callId: string, bytes: Uint8Array): ContentFrame | null {
  const lineEnd = bytes.indexOf(NEWLINE);
  const sizes = readNumbers(bytes, 1, lineEnd);
  if (sizes === null) return null;
  const suffixAt = lineEnd + 1 + sizes.first;
  const sseAt = suffixAt + sizes.second;
  return readContent(callId, bytes, sseAt, { prefix: bytes.subarray(lineEnd + 1, suffixAt), suffix: bytes.subarray(suffixAt, sseAt) });
}

function readWhole(kind: 'error' | 'body', callId: string, bytes: Uint8Array): ErrorFrame | BodyFrame | null {
  const statusEnd = bytes.indexOf(NEWLINE);
  const status = readNumber(bytes, 1, statusEnd);
  if (status === null) return null;
  if (kind === 'body') return { kind, status, body: bytes.subarray(statusEnd + 1) };
  const bodyEnd = bytes.indexOf(NEWLINE, statusEnd + 1);
  if (bodyEnd < 0) return null;
  const address = readAddress(callId, bytes, bodyEnd + 1);
  return address && { kind, ...address, status, body: bytes.subarray(statusEnd + 1, bodyEnd), sse: bytes.subarray(bodyEnd + 1) };
}

/** The numbers of the `id:` line at `lineAt`; null without one, or for another call's. */
function readAddress(callId: string, bytes: Uint8Array, lineAt: number): { attempt: number; seq: number } | null {
  if (!beginsWithIdOf(callId, bytes, lineAt)) return null;
  const attemptAt = lineAt + ID_FIELD.length + callId.length + 1;
  const numbers = readNumbers(bytes, attemptAt, bytes.indexOf(NEWLINE, attemptAt));
  return numbers && { attempt: numbers.first, seq: numbers.second };
}

/** Two numbers from 1, with a dot between them. */
function readNumbers(bytes: Uint8Array, from: number, end: number): { first: number; second: number } | null {
  const firstEnd = bytes.indexOf(DOT, from);
  const first = readNumber(bytes, from, firstEnd);
  const second = readNumber(bytes, firstEnd + 1, end);
  return first === null || second === null || first < 1 || second < 1 ? null : { first, second };
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
