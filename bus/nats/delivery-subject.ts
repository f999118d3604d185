/** What the broker writes into the reply subject of each message that it delivers. */
export interface DeliveryInfo {
  /** 1 at the first delivery. */
  delivery: number;
  streamSequence: number;
  /** Counts the deliveries of the consumer: a gap means that a message was lost on its way. */
  consumerSequence: number;
  storedAtMs: number;
  /** Messages that the consumer had yet to deliver at that moment. */
  pending: number;
}

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<delivery>.<stream sequence>.<consumer sequence>.<nanoseconds>.<pending>`, or the longer form
 * of newer brokers, which puts a domain and an account before the stream and something random at the end.
 * Null for anything else.
 */
export function parseDelivery(reply: string): DeliveryInfo | null {
  const tokens = reply.split('.');
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK') return null;
  const first = tokens.length === 9 ? 4 : tokens.length >= 11 ? 6 : null;
  if (first === null) return null;
  const [delivery = Number.NaN, streamSequence = Number.NaN, consumerSequence = Number.NaN] = tokens.slice(first, first + 3).map(Number);
  // Nanoseconds don't fit a number: the last six digits are cut off before.
  const storedAtMs = Number(tokens[first + 3]?.slice(0, -6));
  const info = { delivery, streamSequence, consumerSequence, storedAtMs, pending: Number(tokens[first + 4]) };
  return Object.values(info).every(Number.isSafeInteger) ? info : null;
}
