/**
 * What a worker sends on `tok.<origin>.<call>`. The bytes for the client are made once, in the worker; a gateway looks at the first
 * byte and at the `id:` line and writes the rest as it is.
 *
 *   o  `o` + SSE bytes                              opens the stream without showing content (role, debug)
 *   c  `c` + SSE bytes                              shows content: from here on no other provider may take over
 *   d  `d` + SSE bytes                              finish, usage, [DONE]: the last frame of a stream that went well
 *   e  `e` + status + `\n` + JSON body + `\n` + SSE bytes   the last frame of a stream that failed: the body if no header was sent yet, else the bytes
 *   b  `b` + status + `\n` + JSON body              the only frame of a call that wants its answer whole
 *
 * SSE bytes begin with `id: <call>.<attempt>.<seq>\n`. The attempt is the delivery number of the work item; seq counts from 1 in it.
 */
export type Frame =
  | { kind: 'open' | 'content' | 'done'; attempt: number; seq: number; sse: Uint8Array }
  | { kind: 'error'; status: number; body: Uint8Array; sse: Uint8Array }
  | { kind: 'body'; status: number; body: Uint8Array };

const NEWLINE = 10;
const DOT = 46;
const KINDS = { 111: 'open', 99: 'content', 100: 'done', 101: 'error', 98: 'body' } as const;
const LETTERS = { open: 'o', content: 'c', done: 'd' } as const;

/** A frame of ready SSE bytes. `events` is one or more whole events, each closed by an empty line. */
export function sseFrame(kind: 'open' | 'content' | 'done', callId: string, attempt: number, seq: number, events: string): Uint8Array {
  return Buffer.from(`${LETTERS[kind]}id: ${callId}.${attempt}.${seq}\n${events}`, 'utf8');
}

/** The end of a stream that failed. `body` is one line of JSON. */
export function errorFrame(callId: string, attempt: number, seq: number, status: number, body: string, events: string): Uint8Array {
  return Buffer.from(`e${status}\n${body}\nid: ${callId}.${attempt}.${seq}\n${events}`, 'utf8');
}

/** The whole answer, or the whole error, of a call that wants a body. */
export function bodyFrame(status: number, body: string): Uint8Array {
  return Buffer.from(`b${status}\n${body}`, 'utf8');
}

/** Takes a frame apart without copying: the parts are views into it. Null when the bytes are not a frame. */
export function readFrame(callId: string, bytes: Uint8Array): Frame | null {
  const kind = KINDS[bytes[0] as keyof typeof KINDS];
  if (kind === undefined) return null;
  if (kind === 'open' || kind === 'content' || kind === 'done') {
    // `id: ` and the call id have a known length, so only the two numbers are read.
    let at = 1 + 4 + callId.length + 1;
    let attempt = 0;
    for (; at < bytes.length && bytes[at] !== DOT; at += 1) attempt = attempt * 10 + ((bytes[at] as number) - 48);
    let seq = 0;
    for (at += 1; at < bytes.length && bytes[at] !== NEWLINE; at += 1) seq = seq * 10 + ((bytes[at] as number) - 48);
    if (!Number.isInteger(attempt) || !Number.isInteger(seq) || attempt < 1 || seq < 1) return null;
    return { kind, attempt, seq, sse: bytes.subarray(1) };
  }
  const statusEnd = bytes.indexOf(NEWLINE);
  const status = Number(Buffer.from(bytes.subarray(1, statusEnd)).toString('latin1'));
  if (statusEnd < 0 || !Number.isInteger(status)) return null;
  if (kind === 'body') return { kind, status, body: bytes.subarray(statusEnd + 1) };
  const bodyEnd = bytes.indexOf(NEWLINE, statusEnd + 1);
  if (bodyEnd < 0) return null;
  return { kind, status, body: bytes.subarray(statusEnd + 1, bodyEnd), sse: bytes.subarray(bodyEnd + 1) };
}
