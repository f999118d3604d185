import { catalogue } from '#shared/config/catalogue.ts';

type Setting = 'ANTHROPIC_API_KEY' | 'GEMINI_API_KEY' | 'GROQ_API_KEY' | 'TOGETHER_API_KEY' | 'MISTRAL_API_KEY' | 'DEEPSEEK_API_KEY' | 'XAI_API_KEY';

/** A vendor whose key alone enables it, at the vendor's own address and with its models of the catalogue. */
export interface Vendor {
  setting: Setting;
  /** In the catalogue. */
  slug: string;
  name: string;
  /** Of its block in the router's configuration. */
  dialect: { kind: string; profile?: string };
}

const compatible = (profile: string) => ({ kind: 'openai-compatible', profile });

/** In the order in which the sample agent's model is chosen. */
const VENDORS: readonly Omit<Vendor, 'name'>[] = [
  { setting: 'ANTHROPIC_API_KEY', slug: 'anthropic', dialect: { kind: 'anthropic' } },
  { setting: 'GEMINI_API_KEY', slug: 'google', dialect: { kind: 'gemini' } },
  { setting: 'GROQ_API_KEY', slug: 'groq', dialect: compatible('groq') },
  { setting: 'TOGETHER_API_KEY', slug: 'together', dialect: compatible('together') },
  { setting: 'MISTRAL_API_KEY', slug: 'mistral', dialect: compatible('mistral') },
  { setting: 'DEEPSEEK_API_KEY', slug: 'deepseek', dialect: compatible('deepseek') },
  { setting: 'XAI_API_KEY', slug: 'xai', dialect: compatible('xai') },
];

/** Those whose key is set. */
export function enabledVendors(given: Readonly<Partial<Record<Setting, string | undefined>>>): readonly Vendor[] {
  return VENDORS.filter(({ setting }) => given[setting] !== undefined).map((vendor) => ({
    ...vendor,
    name: catalogue().providers[vendor.slug]?.name ?? vendor.slug,
  }));
}
