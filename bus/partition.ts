/** The number of partitions. Fixed at a store's first start and checked at each later one. */
export const PARTITION_COUNT = 64;

/** FNV-1a (32 bit) of the session id's UTF-8 bytes, modulo the count: the same in every process and driver. */
export function partitionOf(sessionId: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(sessionId, 'utf8')) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0) % PARTITION_COUNT;
}
