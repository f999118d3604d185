import type { Cache } from '#shared/storage/cache.ts';

const RETENTION_MS = 6 * 60 * 60 * 1_000;
/** Of one request: the last calls of its conversation. */
const MAX_LOOKUPS = 64;
/** A call does not wait longer for a cache that hangs. */
const LOOKUP_TIMEOUT_MS = 500;
/** Values of the cache have at most 64 Ki characters; longer signatures are not known. */
const MAX_SIGNATURE_CHARS = 64 * 1_024;
const MAX_CALL_ID_CHARS = 256;

/** Signatures of tool calls, for clients that don't send them back. */
export interface SignatureCache {
  /** Never fails: what can't be found is lost. */
  find(callIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** In the background; never fails. */
  store(callId: string, signature: string): void;
}

/** @param slug of the provider: other providers refuse its signatures */
export function signatureCache(cache: Cache, slug: string): SignatureCache {
  const keyOf = (callId: string) => `thought-signature.${slug}.${callId}`;
  const isKey = (callId: string) => callId.length <= MAX_CALL_ID_CHARS;
  return {
    async find(callIds) {
      const found = new Map<string, string>();
      const lookups = callIds
        .filter(isKey)
        .slice(-MAX_LOOKUPS)
        .map(async (callId) => {
          const signature = await cache.get(keyOf(callId));
          if (signature !== null) found.set(callId, signature);
        });
      await orAfter(Promise.allSettled(lookups), LOOKUP_TIMEOUT_MS);
      // A later answer must not change what is used.
      return new Map(found);
    },
    store(callId, signature) {
      if (!isKey(callId) || signature.length > MAX_SIGNATURE_CHARS) return;
      // Without a cache the placeholder is sent.
      cache.set(keyOf(callId), signature, RETENTION_MS).catch(() => {});
    },
  };
}

function orAfter(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    void work.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
