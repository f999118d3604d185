import { catalogue } from '#shared/config/catalogue.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

type Prefix = 'ANTHROPIC' | 'GEMINI' | 'GROQ' | 'TOGETHER' | 'MISTRAL' | 'DEEPSEEK' | 'XAI';
type Setting = `${Prefix}_API_KEY`;
type Given = Readonly<Partial<Record<Setting | `${Prefix}_BASE_URL`, string | undefined>>>;

/** A vendor whose key enables it, with its models of the catalogue. */
export interface Vendor {
  setting: Setting;
  /** In the catalogue. */
  slug: string;
  name: string;
  /** Null: the vendor's own. */
  baseUrl: string | null;
  /** Of its block in the router's configuration. */
  dialect: { kind: string; profile?: string };
}

const compatible = (profile: string) => ({ kind: 'openai-compatible', profile });

/** In the order in which the sample agent's model is chosen. */
const VENDORS: readonly (Omit<Vendor, 'name' | 'baseUrl' | 'setting'> & { prefix: Prefix })[] = [
  { prefix: 'ANTHROPIC', slug: 'anthropic', dialect: { kind: 'anthropic' } },
  { prefix: 'GEMINI', slug: 'google', dialect: { kind: 'gemini' } },
  { prefix: 'GROQ', slug: 'groq', dialect: compatible('groq') },
  { prefix: 'TOGETHER', slug: 'together', dialect: compatible('together') },
  { prefix: 'MISTRAL', slug: 'mistral', dialect: compatible('mistral') },
  { prefix: 'DEEPSEEK', slug: 'deepseek', dialect: compatible('deepseek') },
  { prefix: 'XAI', slug: 'xai', dialect: compatible('xai') },
];

/** Those whose key is set. @throws `config.invalid` naming an address without its key */
export function enabledVendors(given: Given): readonly Vendor[] {
  return VENDORS.flatMap(({ prefix, slug, dialect }) => {
    const setting = `${prefix}_API_KEY` as const;
    const baseUrl = given[`${prefix}_BASE_URL`] ?? null;
    if (given[setting] !== undefined) return [{ setting, slug, dialect, baseUrl, name: catalogue().providers[slug]?.name ?? slug }];
    if (baseUrl !== null) throw new SwitchyardError('config.invalid', `${prefix}_BASE_URL has no effect without ${setting}`);
    return [];
  });
}
