/** The broker's header for its dedupe window. */
export const MESSAGE_ID_HEADER = 'Nats-Msg-Id';

/** Encodes a message id as a header value, which may contain no line ends and no outer blanks. Our own ids stay unchanged. */
export function toWireId(messageId: string): string {
  return encodeURIComponent(messageId);
}

/** Decodes a header value. One that others have published may not be encoded, and is returned as it is. */
export function fromWireId(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
