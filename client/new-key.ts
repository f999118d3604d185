/** 128 random bits, as an idempotency key; `crypto.randomUUID` is missing in pages without TLS. */
export function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
