import type { TemplateBytes } from './frame.ts';

const ZERO = 48;

/** The bytes around the texts of one attempt. */
export class EventTemplate {
  readonly attempt: number;
  /** Up to the sequence number. */
  readonly #beforeSeq: Uint8Array;
  /** From the sequence number to the text. */
  readonly #beforeText: Uint8Array;
  readonly #afterText: Uint8Array;

  constructor(callId: string, attempt: number, { prefix, suffix }: TemplateBytes) {
    this.attempt = attempt;
    // Copies: a view would keep its whole frame in memory until the call ends.
    this.#beforeSeq = new Uint8Array(Buffer.from(`id: ${callId}.${attempt}.`, 'latin1'));
    this.#beforeText = new Uint8Array(Buffer.concat([Buffer.from('\n', 'latin1'), prefix]));
    this.#afterText = new Uint8Array(suffix);
  }

  /** The event of a text: what its worker would have sent whole. */
  eventOf(seq: number, text: Uint8Array): Uint8Array {
    const beforeSeq = this.#beforeSeq;
    const beforeText = this.#beforeText;
    const afterText = this.#afterText;
    const digits = digitsOf(seq);
    const sse = Buffer.allocUnsafe(beforeSeq.length + digits + beforeText.length + text.length + afterText.length);
    sse.set(beforeSeq, 0);
    let at = beforeSeq.length + digits;
    for (let left = seq, index = at - 1; index >= beforeSeq.length; index -= 1, left = Math.floor(left / 10)) sse[index] = ZERO + (left % 10);
    sse.set(beforeText, at);
    at += beforeText.length;
    sse.set(text, at);
    sse.set(afterText, at + text.length);
    return sse;
  }
}

function digitsOf(number: number): number {
  let digits = 1;
  for (let left = number; left >= 10; left /= 10) digits += 1;
  return digits;
}
