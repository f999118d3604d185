/** As a creation's body allows. Commits write the metadata, so patches must not grow it without bound. */
const MAX_METADATA_BYTES = 1_024 * 1_024;

interface Changes {
  setMetadata: Record<string, unknown>;
  /** Applied last. */
  unsetMetadata: readonly string[];
}

export function changedMetadata(metadata: Record<string, unknown>, { setMetadata, unsetMetadata }: Changes): Record<string, unknown> {
  const unset = new Set(unsetMetadata);
  return Object.fromEntries(Object.entries({ ...metadata, ...setMetadata }).filter(([key]) => !unset.has(key)));
}

export function isTooLarge(metadata: Record<string, unknown>): boolean {
  return Buffer.byteLength(JSON.stringify(metadata)) > MAX_METADATA_BYTES;
}
