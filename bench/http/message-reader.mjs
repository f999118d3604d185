/**
 * @typedef {object} Head
 * @property {string} startLine
 * @property {number} status of a response; 0 for a request
 * @property {boolean} isLast the sender closes the connection after this message
 */

/**
 * @typedef {object} MessageHandlers called in this order, `onBody` any number of times
 * @property {(head: Head) => void} onHead
 * @property {(bytes: Buffer) => void} onBody
 * @property {() => void} onEnd
 */

const HEAD_END = '\r\n\r\n';
const LINE_END = '\r\n';
/** No peer of the bench sends a head, or the size line of a chunk, that is longer. */
const MAX_UNREAD_BYTES = 64 * 1_024;

/**
 * Parses HTTP/1.1 messages from the bytes of one direction of a connection. It supports what the bench's peers send and
 * nothing more: a body has a length or comes in chunks, or there is none.
 */
export class MessageReader {
  /** @type {'head' | 'body' | 'chunk-size' | 'chunk' | 'trailer'} */
  #state = 'head';
  /** @type {Buffer} */
  #unread = Buffer.alloc(0);
  /** Of the body, or of the chunk and the line end behind it. */
  #leftBytes = 0;
  /** @type {MessageHandlers} */
  #handlers;

  /** @param {MessageHandlers} handlers */
  constructor(handlers) {
    this.#handlers = handlers;
  }

  /** @param {Buffer} bytes @throws when they are no message of this kind */
  push(bytes) {
    let data = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    for (;;) {
      const took = this.#take(data);
      if (took === null) break;
      data = data.subarray(took);
    }
    if (data.length > MAX_UNREAD_BYTES) throw new Error(`a message has a head of more than ${MAX_UNREAD_BYTES} bytes`);
    this.#unread = data;
  }

  /** @param {Buffer} data @returns {number | null} how many bytes are done with; null: more are needed */
  #take(data) {
    switch (this.#state) {
      case 'head':
        return this.#takeHead(data);
      case 'body':
        return this.#takeBody(data);
      case 'chunk-size':
        return this.#takeChunkSize(data);
      case 'chunk':
        return this.#takeChunk(data);
      case 'trailer':
        return this.#takeTrailer(data);
    }
  }

  /** @param {Buffer} data */
  #takeHead(data) {
    const end = data.indexOf(HEAD_END);
    if (end < 0) return null;
    const text = data.toString('latin1', 0, end);
    const [startLine = ''] = text.split(LINE_END, 1);
    const status = startLine.startsWith('HTTP/1.1 ') ? Number(startLine.slice(9, 12)) : 0;
    this.#handlers.onHead({ startLine, status, isLast: /\r\nconnection: *close/i.test(text) });
    const [, length] = /\r\ncontent-length: *(\d+)/i.exec(text) ?? [];
    if (length !== undefined) this.#leftBytes = Number(length);
    if (/\r\ntransfer-encoding: *chunked/i.test(text)) this.#state = 'chunk-size';
    else if (length !== undefined && this.#leftBytes > 0) this.#state = 'body';
    else this.#handlers.onEnd();
    return end + HEAD_END.length;
  }

  /** @param {Buffer} data */
  #takeBody(data) {
    if (data.length === 0) return null;
    const took = Math.min(data.length, this.#leftBytes);
    this.#handlers.onBody(took === data.length ? data : data.subarray(0, took));
    this.#leftBytes -= took;
    if (this.#leftBytes === 0) this.#end();
    return took;
  }

  /** @param {Buffer} data */
  #takeChunkSize(data) {
    const end = data.indexOf(LINE_END);
    if (end < 0) return null;
    const size = Number.parseInt(data.toString('latin1', 0, end), 16);
    if (Number.isNaN(size)) throw new Error('a chunk has no size');
    this.#state = size === 0 ? 'trailer' : 'chunk';
    this.#leftBytes = size + LINE_END.length;
    return end + LINE_END.length;
  }

  /** @param {Buffer} data */
  #takeChunk(data) {
    if (data.length === 0) return null;
    const took = Math.min(data.length, this.#leftBytes);
    const ofBody = Math.min(took, this.#leftBytes - LINE_END.length);
    if (ofBody > 0) this.#handlers.onBody(data.subarray(0, ofBody));
    this.#leftBytes -= took;
    if (this.#leftBytes === 0) this.#state = 'chunk-size';
    return took;
  }

  /** @param {Buffer} data */
  #takeTrailer(data) {
    const end = data.indexOf(LINE_END);
    if (end < 0) return null;
    if (end === 0) this.#end();
    return end + LINE_END.length;
  }

  #end() {
    this.#state = 'head';
    this.#handlers.onEnd();
  }
}
