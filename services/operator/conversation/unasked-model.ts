import type { Manifest } from '#shared/contracts/manifest/manifest.ts';

/** The agent's model of vectors, which no conversation in memory asks: what a search finds is given or recorded, and shared words decide what is alike. Null: it has none. */
export function unaskedModel({ agent_config: { search } }: Manifest): string | null {
  return search?.type === 'pgvector' ? search.embedding_model : null;
}
