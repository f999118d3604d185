/** For the broker's dedupe window. */
export const MESSAGE_ID_HEADER = 'Nats-Msg-Id';

/** An encoded id has no semicolon. */
const AGAIN = /;\d+$/;

/**
 * Header values hold no line ends or outer blanks. Our ids stay unchanged.
 * @param again above 0: another id for the dedupe window, of the same message to its readers
 */
export function toWireId(messageId: string, again = 0): string {
  const encoded = encodeURIComponent(messageId);
  return again === 0 ? encoded : `${encoded};${again}`;
}

/** Others' ids may not be encoded, and stay as they are. */
export function fromWireId(value: string): string {
  try {
    return decodeURIComponent(value.replace(AGAIN, ''));
  } catch {
    return value;
  }
}
