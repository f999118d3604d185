/** Can't occur in a JSON string, where quotes are escaped: the first match ends the head. */
const HEAD_END = ',"choices":[';
const DATA_START = '\ndata: {';
const TEXT_START = Buffer.from(',"choices":[{"index":0,"delta":{"content":', 'latin1');
const SUFFIX = Buffer.from('},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}\n\n', 'latin1');

/**
 * What stands around texts that follow an event of the release before: it is the same in all chunks of an answer, and was stated nowhere. Null when the first
 * event is no chunk.
 * @param sse with its `id:` line
 */
export function unstatedTemplate(sse: Uint8Array): { prefix: Uint8Array; suffix: Uint8Array } | null {
  const bytes = Buffer.from(sse.buffer, sse.byteOffset, sse.byteLength);
  const start = bytes.indexOf('\n');
  const headEnd = bytes.indexOf(HEAD_END, start);
  if (bytes.indexOf(DATA_START, start) !== start || headEnd < 0 || headEnd > bytes.indexOf('\n', start + 1)) return null;
  return { prefix: Buffer.concat([bytes.subarray(start + 1, headEnd), TEXT_START]), suffix: SUFFIX };
}
