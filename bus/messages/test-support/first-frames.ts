/** Frames of the release before those that state their template: its reader, and what its worker writes. Copied from it. */

type Frame = ReadyFrame | { kind: 'text'; attempt: number; seq: number; json: Uint8Array };

type ReadyFrame =
  | { kind: 'open' | 'content' | 'done'; attempt: number; seq: number; sse: Uint8Array }
  | { kind: 'error'; attempt: number; seq: number; status: number; body: Uint8Array; sse: Uint8Array }
  | { kind: 'body'; status: number; body: Uint8Array };

const NEWLINE = 10;
const DOT = 46;
const ZERO = 48;
const MAX_DIGITS = 9;
const ID_FIELD = 'id: ';
const EVENT_END = '\n\n';
const BETWEEN_EVENTS = /\n\n(?!$)/g;
const KINDS = { 116: 'text', 111: 'open', 99: 'content', 100: 'done', 101: 'error', 98: 'body' } as const;
const LETTERS = { open: 'o', content: 'c', done: 'd' } as const;

function sseFrame(kind: 'open' | 'content' | 'done', callId: string, attempt: number, seq: number, events: string): Uint8Array {
  const address = `${callId}.${attempt}.${seq}`;
  return Buffer.from(`${LETTERS[kind]}id: ${address}\n${numbered(events, address)}`, 'utf8');
}

function textFrame(attempt: number, seq: number, json: string): Uint8Array {
  return Buffer.from(`t${attempt}.${seq}\n${json}`, 'utf8');
}

function numbered(events: string, address: string): string {
  // Most frames hold one event.
  if (events.indexOf(EVENT_END) === events.length - EVENT_END.length) return events;
  let index = 1;
  return events.replace(BETWEEN_EVENTS, () => {
    index += 1;
    return `${EVENT_END}id: ${address}.${index}\n`;
  });
}

function readFirstFrame(callId: string, bytes: Uint8Array): Frame | null {
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

function beginsWithIdOf(callId: string, bytes: Uint8Array, lineAt: number): boolean {
  const callAt = lineAt + ID_FIELD.length;
  for (let index = 0; index < ID_FIELD.length; index += 1) if (bytes[lineAt + index] !== ID_FIELD.charCodeAt(index)) return false;
  for (let index = 0; index < callId.length; index += 1) if (bytes[callAt + index] !== callId.charCodeAt(index)) return false;
  return bytes[callAt + callId.length] === DOT;
}

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

/** Between a chunk's head and its delta, and after the delta, when the chunk has nothing else. */
const DELTA_START = ',"choices":[{"index":0,"delta":';
const DELTA_END = ',"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}\n\n';

/** Can't occur in a JSON string, where quotes are escaped: the first match ends the head. */
const HEAD_END = ',"choices":[';
const DATA_START = '\ndata: {';
const TEXT_START = `${DELTA_START}{"content":`;
const AFTER_TEXT = Buffer.from(`}${DELTA_END}`, 'latin1');

/** A text frame of an attempt that has no template yet. */
interface HeadlessFrame {
  kind: 'headless';
  attempt: number;
  seq: number;
}

/** The bytes around the texts of one attempt. */
interface ChunkTemplate {
  attempt: number;
  /** Up to the sequence number. */
  beforeSeq: Uint8Array;
  /** From the sequence number to the text. */
  beforeText: Uint8Array;
}

/**
 * Expands the frames of one call to SSE events. All chunks of an attempt have the same head (call, model, provider): text frames omit it, and it is taken
 * from a content frame.
 */
export class FirstFrameReader {
  readonly #callId: string;
  /** Of the newest attempt with a known head. */
  #template: ChunkTemplate | null = null;

  constructor(callId: string) {
    this.#callId = callId;
  }

  /** Null: not a frame of this call. */
  read(bytes: Uint8Array): ReadyFrame | HeadlessFrame | null {
    const frame = readFirstFrame(this.#callId, bytes);
    if (frame === null) return null;
    if (frame.kind === 'text') {
      const { attempt, seq, json } = frame;
      const template = this.#template;
      if (template === null || template.attempt !== attempt) return { kind: 'headless', attempt, seq };
      return { kind: 'content', attempt, seq, sse: eventOf(template, seq, json) };
    }
    if ((frame.kind === 'content' || frame.kind === 'done') && frame.attempt > (this.#template?.attempt ?? 0)) this.#compile(frame.attempt, frame.sse);
    return frame;
  }

  #compile(attempt: number, sse: Uint8Array): void {
    const beforeText = beforeTextIn(sse);
    if (beforeText !== null) this.#template = { attempt, beforeSeq: apart(Buffer.from(`id: ${this.#callId}.${attempt}.`, 'latin1')), beforeText };
  }
}

/** From the end of the first `id:` line to where a text begins; null when the first event is no chunk. */
function beforeTextIn(sse: Uint8Array): Uint8Array | null {
  const bytes = Buffer.from(sse.buffer, sse.byteOffset, sse.byteLength);
  const start = bytes.indexOf('\n');
  const headEnd = bytes.indexOf(HEAD_END, start);
  if (bytes.indexOf(DATA_START, start) !== start || headEnd < 0 || headEnd > bytes.indexOf('\n', start + 1)) return null;
  return apart(Buffer.concat([bytes.subarray(start, headEnd), Buffer.from(TEXT_START, 'latin1')]));
}

/** A view would hold its whole source buffer until the call ends. */
function apart(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

function eventOf({ beforeSeq, beforeText }: ChunkTemplate, seq: number, json: Uint8Array): Uint8Array {
  const digits = digitsOf(seq);
  const sse = Buffer.allocUnsafe(beforeSeq.length + digits + beforeText.length + json.length + AFTER_TEXT.length);
  sse.set(beforeSeq, 0);
  let at = beforeSeq.length + digits;
  for (let left = seq, index = at - 1; index >= beforeSeq.length; index -= 1, left = Math.floor(left / 10)) sse[index] = ZERO + (left % 10);
  sse.set(beforeText, at);
  at += beforeText.length;
  sse.set(json, at);
  sse.set(AFTER_TEXT, at + json.length);
  return sse;
}

function digitsOf(number: number): number {
  let digits = 1;
  for (let left = number; left >= 10; left /= 10) digits += 1;
  return digits;
}

/** The frames that a worker of the release before makes of texts, which it accumulated from parts. */
export function firstFrames(
  callId: string,
  head: { created: number; model: string; provider: string },
  attempt: number,
  texts: readonly string[],
): Uint8Array[] {
  const start = `data: {"id":${JSON.stringify(callId)},"object":"chat.completion.chunk","created":${head.created},"model":${JSON.stringify(head.model)},"provider":${JSON.stringify(head.provider)}`;
  const chunk = (delta: string) => `${start}${DELTA_START}${delta}${DELTA_END}`;
  const contents = texts.map((text, index) =>
    index === 0
      ? sseFrame('content', callId, attempt, 1, `${chunk('{"role":"assistant","content":""}')}${chunk(`{"content":${JSON.stringify(text)}}`)}`)
      : textFrame(attempt, index + 1, JSON.stringify(text)),
  );
  return [...contents, sseFrame('done', callId, attempt, texts.length + 1, 'data: [DONE]\n\n')];
}
