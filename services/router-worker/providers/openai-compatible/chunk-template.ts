import type { UpstreamChunk } from './chunk.ts';
import { isPlainChunk } from './plain-chunk.ts';

/** Per answer. Vendors that put random text into each chunk never get a template. */
const MAX_TRIES = 4;
/** Text that JSON needs no escapes for. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON has them escaped
const UNESCAPED = /^[^"\\\u0000-\u001f]+$/;
const [SPACE, QUOTE, BACKSLASH, TILDE] = [0x20, 0x22, 0x5c, 0x7e];
/** Invalid JSON outside of quotes. */
const PROBE = 'any text';

/**
 * Fast path for chunks that differ in text alone. A parsed chunk gives prefix and suffix; one with the same, and nothing between that JSON would escape, has
 * exactly that text and isn't parsed.
 */
export class ChunkTemplate {
  #head: string | null = null;
  #tail = '';
  /** In bytes of the event; null when it takes more than one line. */
  #around: { head: Buffer; tail: Buffer } | null = null;
  #tries = 0;

  /** Null when the chunk must be parsed. */
  textOf(data: string): string | null {
    const head = this.#head;
    if (head === null || !data.startsWith(head) || !data.endsWith(this.#tail)) return null;
    const text = data.slice(head.length, data.length - this.#tail.length);
    return UNESCAPED.test(text) ? text : null;
  }

  /**
   * The text of a piece of a body, without decoding or event parsing: a one-line event is its chunk's bytes, and unescaped text has no line end.
   * @param piece begins between two events
   * @returns null unless the piece is exactly one event with plain ASCII text
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

  compile(data: string, chunk: UpstreamChunk): void {
    if (this.#tries >= MAX_TRIES) return;
    const text = textIn(chunk);
    if (text === null || !UNESCAPED.test(text)) return;
    this.#tries += 1;
    const at = data.indexOf(`"${text}"`);
    const [head, tail] = [data.slice(0, at + 1), data.slice(at + 1 + text.length)];
    // The text may occur in another field first, or be escaped differently: a probe in its place must parse as the text.
    const proof = at < 0 ? null : parsed(`${head}${PROBE}${tail}`);
    if (proof === null || !isPlainChunk(proof) || textIn(proof) !== PROBE) return;
    this.#head = head;
    this.#tail = tail;
    this.#around = /[\r\n]/.test(data) ? null : { head: Buffer.from(`data: ${head}`), tail: Buffer.from(`${tail}\n\n`) };
  }
}

/** Null unless it is a plain chunk with text alone. */
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
