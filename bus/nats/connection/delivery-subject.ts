/** From the reply subject of a delivered message. */
export interface DeliveryInfo {
  /** From 1. */
  delivery: number;
  streamSequence: number;
  /** Per consumer: a gap means a lost message. */
  consumerSequence: number;
  storedAtMs: number;
  pending: number;
}

/**
 * Parses `$JS.ACK.<stream>.<consumer>.<delivery>.<stream sequence>.<consumer sequence>.<nanoseconds>.<pending>`, or the longer form of newer brokers: domain
 * and account before the stream, a random token at the end. Null for anything else.
 */
export function parseDelivery(reply: string): DeliveryInfo | null {
  const tokens = reply.split('.');
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK') return null;
  const first = tokens.length === 9 ? 4 : tokens.length >= 11 ? 6 : null;
  if (first === null) return null;
  const [delivery = Number.NaN, streamSequence = Number.NaN, consumerSequence = Number.NaN] = tokens.slice(first, first + 3).map(Number);
  // Nanoseconds exceed safe integers: six digits are cut off.
  const storedAtMs = Number(tokens[first + 3]?.slice(0, -6));
  const info = { delivery, streamSequence, consumerSequence, storedAtMs, pending: Number(tokens[first + 4]) };
  return Object.values(info).every(Number.isSafeInteger) ? info : null;
}
