interface Embeddings {
  dimensions?: number;
  shortens?: false;
}

/** Of models that vendors' own servers have. */
const KNOWN: Readonly<Record<string, Embeddings>> = {
  'text-embedding-3-small': { dimensions: 1_536 },
  'text-embedding-3-large': { dimensions: 3_072 },
  'text-embedding-ada-002': { dimensions: 1_536, shortens: false },
};
/** As nearly all of them are named. */
const EMBEDS = /embed/i;

/** What the router's configuration says of a model by its name; null: it chats. */
export function embeddingsOf(name: string): Embeddings | null {
  return KNOWN[name] ?? (EMBEDS.test(name) ? {} : null);
}
