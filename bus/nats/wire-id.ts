/** The header in which the broker finds the id to remember. */
export const MESSAGE_ID_HEADER = 'Nats-Msg-Id';

/** A message id as the value of a header, which may hold neither line ends nor blanks at its ends. Ids of ours look the same afterwards. */
export function toWireId(messageId: string): string {
  return encodeURIComponent(messageId);
}

/** The message id of a header's value. What somebody else has published may not be encoded: it is taken as it is. */
export function fromWireId(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
