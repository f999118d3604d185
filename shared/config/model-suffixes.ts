/** What the end of a model's name asks for. docs/routing.md documents it. */
const SUFFIXES = ['nitro', 'floor', 'exacto', 'online', 'thinking', 'free', 'extended'] as const;
export type ModelSuffix = (typeof SUFFIXES)[number];
const KNOWN: ReadonlySet<string> = new Set(SUFFIXES);

/** A name without its suffixes, which count once each and in any order. */
export interface SplitName {
  base: string;
  suffixes: ReadonlySet<ModelSuffix>;
}

const NONE: ReadonlySet<ModelSuffix> = new Set();

/** Splits at each ':' behind the first '/'. Words that are no suffix stay in the name: local servers have names like `llama3.1:8b`. */
export function splitModelName(name: string): SplitName {
  const start = name.indexOf('/') + 1;
  if (!name.includes(':', start)) return { base: name, suffixes: NONE };
  const suffixes = new Set<ModelSuffix>();
  const [first = '', ...words] = name.slice(start).split(':');
  const base = words.reduce((kept, word) => {
    if (!isSuffix(word)) return `${kept}:${word}`;
    suffixes.add(word);
    return kept;
  }, first);
  return { base: name.slice(0, start) + base, suffixes };
}

function isSuffix(word: string): word is ModelSuffix {
  return KNOWN.has(word);
}
