/** For the broker's dedupe window. */
export const MESSAGE_ID_HEADER = 'Nats-Msg-Id';

/** Header values hold no line ends or outer blanks. Our ids stay unchanged. */
export function toWireId(messageId: string): string {
  return encodeURIComponent(messageId);
}

/** Others' ids may not be encoded, and stay as they are. */
export function fromWireId(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
