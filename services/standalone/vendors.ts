/** A vendor whose key alone enables it, at the vendor's own address. */
export interface Vendor {
  setting: 'ANTHROPIC_API_KEY' | 'GEMINI_API_KEY';
  name: string;
  /** Of the router's configuration. */
  provider: Readonly<Record<string, string>>;
  /** Beside text, of all its models. */
  modalities: readonly ('image' | 'audio' | 'video' | 'file')[];
  models: readonly { name: string; maxCompletionTokens: number }[];
  /** Models of vectors; absent: none. */
  embeddings?: readonly { name: string; dimensions: number }[];
}

/** In the order in which the sample agent's model is chosen. */
const VENDORS: readonly Vendor[] = [
  {
    setting: 'ANTHROPIC_API_KEY',
    name: 'Anthropic',
    provider: { slug: 'anthropic', name: 'Anthropic', kind: 'anthropic', api_key: '${ANTHROPIC_API_KEY}' },
    modalities: ['image', 'file'],
    models: [
      { name: 'claude-sonnet-5-5', maxCompletionTokens: 128_000 },
      { name: 'claude-opus-5-5', maxCompletionTokens: 128_000 },
      { name: 'claude-haiku-5-5', maxCompletionTokens: 128_000 },
      { name: 'claude-haiku-4-5', maxCompletionTokens: 64_000 },
    ],
  },
  {
    setting: 'GEMINI_API_KEY',
    name: 'Google',
    provider: { slug: 'google', name: 'Google', kind: 'gemini', api_key: '${GEMINI_API_KEY}' },
    modalities: ['image', 'audio', 'video', 'file'],
    models: ['gemini-3.8-flash', 'gemini-3.5-flash-lite', 'gemini-2.5-pro', 'gemini-2.5-flash'].map((name) => ({ name, maxCompletionTokens: 65_536 })),
    embeddings: [{ name: 'gemini-embedding-001', dimensions: 3_072 }],
  },
];

/** Those whose key is set. */
export function enabledVendors(given: Readonly<Partial<Record<Vendor['setting'], string | undefined>>>): readonly Vendor[] {
  return VENDORS.filter(({ setting }) => given[setting] !== undefined);
}
