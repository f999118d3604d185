import type { UpstreamChunk } from './chunk.ts';
import { isPlainChunk } from './plain-chunk.ts';

/** Chunks of one answer that a mould is made of; where none holds, as with vendors that put a random text into each, all are parsed. */
const MAX_TRIES = 4;
/** Text that stands in JSON as it is. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON has them escaped
const UNESCAPED = /^[^"\\\u0000-\u001f]+$/;
/** The same, of bytes that are one character each. */
const [SPACE, QUOTE, BACKSLASH, TILDE] = [0x20, 0x22, 0x5c, 0x7e];
/** Never valid outside of quotes. */
const PROBE = 'any text';

/**
 * The chunks of an answer mostly differ in their text alone. Once one has been parsed, what stands before and behind its text is known, and
 * others that begin and end so, with nothing between that JSON would escape, say that and nothing else: they need no parsing.
 */
export class ChunkTemplate {
  #head: string | null = null;
  #tail = '';
  /** What stands around the text in the bytes of an event; null when that takes more than one line. */
  #around: { head: Buffer; tail: Buffer } | null = null;
  #tries = 0;

  /** The text that a chunk says; null when only parsing can tell. */
  textOf(data: string): string | null {
    const head = this.#head;
    if (head === null || !data.startsWith(head) || !data.endsWith(this.#tail)) return null;
    const text = data.slice(head.length, data.length - this.#tail.length);
    return UNESCAPED.test(text) ? text : null;
  }

  /**
   * The text that a piece of a body says. The bytes of an event of one line are the chunk's, and what JSON would not escape ends no line: so
   * such a piece need not be made an event, nor even text, to be known.
   * @param piece begins between two events
   * @returns null when the piece is anything but one whole event, or its text is not plain ASCII
   */
  textIn(piece: Buffer): string | null {
    if (this.#around === null) return null;
    const { head, tail } = this.#around;
    const end = piece.length - tail.length;
    if (end <= head.length || head.compare(piece, 0, head.length) !== 0 || tail.compare(piece, end) !== 0) return null;
    for (let at = head.length; at < end; at += 1) {
      const byte = piece[at] as number;
      if (byte < SPACE || byte > TILDE || byte === QUOTE || byte === BACKSLASH) return null;
    }
    return piece.toString('latin1', head.length, end);
  }

  /** @param chunk what the data was parsed to */
  compile(data: string, chunk: UpstreamChunk): void {
    if (this.#tries >= MAX_TRIES) return;
    const text = textIn(chunk);
    if (text === null || !UNESCAPED.test(text)) return;
    this.#tries += 1;
    const at = data.indexOf(`"${text}"`);
    const [head, tail] = [data.slice(0, at + 1), data.slice(at + 1 + text.length)];
    // The text may stand in another field too, or be written in another way: what is put there has to come out as the text.
    const proof = at < 0 ? null : parsed(`${head}${PROBE}${tail}`);
    if (proof === null || !isPlainChunk(proof) || textIn(proof) !== PROBE) return;
    this.#head = head;
    this.#tail = tail;
    this.#around = /[\r\n]/.test(data) ? null : { head: Buffer.from(`data: ${head}`), tail: Buffer.from(`${tail}\n\n`) };
  }
}

/** What a plain chunk says, when that is a text and nothing else. */
function textIn({ choices, usage, error }: UpstreamChunk): string | null {
  const [choice, ...others] = choices ?? [];
  if (choice === undefined || others.length > 0 || usage || error !== undefined || choice.index || choice.finish_reason) return null;
  const { content, reasoning, reasoning_content: alsoReasoning, refusal } = choice.delta ?? {};
  return typeof content !== 'string' || reasoning || alsoReasoning || refusal ? null : content;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
