import { entriesOf } from '#shared/config/catalogue.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';

/** The upstream of the settings OPENAI_…. */
export interface Upstream {
  baseUrl: string;
  /** The slug is the prefix of model ids; responses carry the name. */
  provider: { slug: string; name: string };
  /** Without it requests carry no credential, as local model servers expect. */
  hasKey: boolean;
  /** Null: not known yet. */
  models: readonly string[] | null;
}

const OPENAI_BASE_URL = 'https://api.openai.com/v1';
const MAX_SLUG_CHARACTERS = 64;

interface Given {
  OPENAI_API_KEY?: string | undefined;
  OPENAI_BASE_URL?: string | undefined;
  OPENAI_MODELS?: string | undefined;
  OPENAI_PROVIDER_NAME?: string | undefined;
}

/** Null: neither a key nor an address is set. @throws `config.invalid` naming the setting */
export function upstreamOf(given: Given): Upstream | null {
  const { OPENAI_API_KEY: key, OPENAI_BASE_URL: baseUrl = OPENAI_BASE_URL, OPENAI_MODELS: models } = given;
  const hasKey = key !== undefined;
  if (!hasKey && given.OPENAI_BASE_URL === undefined) return null;
  const isVendor = isOpenAi(baseUrl);
  if (isVendor && !hasKey) throw new SwitchyardError('config.invalid', `OPENAI_BASE_URL is ${OPENAI_BASE_URL}, which requires a key: set OPENAI_API_KEY`);
  const known = isVendor ? entriesOf('openai').map(({ name }) => name) : null;
  return { baseUrl, provider: providerOf(given.OPENAI_PROVIDER_NAME, baseUrl, isVendor), hasKey, models: models === undefined ? known : listOf(models) };
}

/** Whether it is OpenAI itself, whose models the catalogue has. */
export function isOpenAi(baseUrl: string): boolean {
  return new URL(baseUrl).host === new URL(OPENAI_BASE_URL).host;
}

function providerOf(given: string | undefined, baseUrl: string, isVendor: boolean): Upstream['provider'] {
  const name = given ?? (isVendor ? 'OpenAI' : new URL(baseUrl).hostname);
  const slug = name
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+|-+$/g, '')
    .slice(0, MAX_SLUG_CHARACTERS);
  if (slug === '') throw new SwitchyardError('config.invalid', 'OPENAI_PROVIDER_NAME must contain a letter or a digit: it is the prefix of model ids');
  return { slug, name };
}

function listOf(text: string): string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 0) throw new SwitchyardError('config.invalid', 'OPENAI_MODELS must name at least one model');
  return [...new Set(names)];
}
