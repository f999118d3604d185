import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { quotedName } from '../contracts/printed-name.ts';
import { formatPath } from './problems.ts';
import { endpointFacts, modelFacts, providerIdentity } from './router-config.ts';

/** What one provider serves of one model. */
const entry = z.strictObject({ ...modelFacts, ...endpointFacts });
export type CatalogueEntry = z.infer<typeof entry>;

const { privacy_policy_url, terms_of_service_url, status_page_url } = providerIdentity;
const provider = z.strictObject({
  name: z.string().min(1),
  /** The vendor's usual terms for calls with a key of its API. Absent: not known. */
  data_policy: z.strictObject({ trains: z.boolean(), retains: z.boolean() }).optional(),
  privacy_policy_url,
  terms_of_service_url,
  status_page_url,
});

/** `catalogue/models.json`, which `scripts/update-catalogue.mjs` writes. */
export const catalogueFile = z.strictObject({
  /** Of the data: prices change. */
  date: z.iso.date(),
  source: z.string(),
  /** By slug. */
  providers: z.record(z.string(), provider),
  /** `<provider>/<the provider's name of the model>`; of each provider the one for the sample agent first. */
  models: z.record(z.string().regex(/^[a-z0-9][a-z0-9._-]*\/[A-Za-z0-9._:/-]+$/), entry),
  /** Models that several providers serve: by a name without a provider, their entries. */
  shared: z.record(z.string().regex(/^[a-z0-9._-]+\/[a-z0-9._-]+$/), z.array(z.string()).min(2)),
});
export type Catalogue = z.infer<typeof catalogueFile>;

let read: Catalogue | null = null;

/** Read at the first use: most processes need none of it. */
export function catalogue(): Catalogue {
  read ??= catalogueFile.parse(JSON.parse(readFileSync(new URL('../../catalogue/models.json', import.meta.url), 'utf8')));
  return read;
}

/** What a provider serves, in its order. */
export function entriesOf(provider: string): { name: string; entry: CatalogueEntry }[] {
  return Object.entries(catalogue().models).flatMap(([id, entry]) => {
    const parts = partsOfId(id);
    return parts.provider === provider ? [{ name: parts.name, entry }] : [];
  });
}

/** `openai` and `gpt-5` of `openai/gpt-5`. */
export function partsOfId(id: string): { provider: string; name: string } {
  const slash = id.indexOf('/');
  return { provider: id.slice(0, slash), name: id.slice(slash + 1) };
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * A router file with what the catalogue has of its models, where these, or endpoints of them, name an entry with `catalogue` and leave it out. Fields of the
 * file win one by one, prices too; `null` leaves a field out.
 * @param value as read, of any type
 * @returns the same value where nothing names an entry; sentences for entries that there are not
 */
export function withCatalogue(value: unknown): { value: unknown; problems: string[] } {
  const problems: string[] = [];
  if (!isFields(value) || !Array.isArray(value.models) || !value.models.some(namesAny)) return { value, problems };
  const models = value.models.map((model, index) => (namesAny(model) ? filledModel(model, ['models', index], problems) : model));
  return { value: { ...value, models }, problems };
}

function namesAny(model: unknown): model is Fields {
  if (!isFields(model)) return false;
  return model.catalogue !== undefined || (Array.isArray(model.endpoints) && model.endpoints.some((one) => isFields(one) && one.catalogue !== undefined));
}

function filledModel({ catalogue: id, ...given }: Fields, path: PropertyKey[], problems: string[]): Fields {
  const found = entryOf(id, path, problems);
  const { name, description, embeddings } = found?.entry ?? {};
  const endpoints = given.endpoints === undefined && found !== null ? [{}] : given.endpoints;
  return overriding(
    { name, description, embeddings },
    {
      ...given,
      ...(Array.isArray(endpoints) && {
        endpoints: endpoints.map((endpoint, index) =>
          isFields(endpoint) ? filledEndpoint(endpoint, found, [...path, 'endpoints', index], problems) : endpoint,
        ),
      }),
    },
  );
}

interface Found {
  provider: string;
  /** The provider's name of the model. */
  name: string;
  entry: CatalogueEntry;
}

/** @param ofModel the entry that its model names, which is one provider's: endpoints of others have nothing of it */
function filledEndpoint({ catalogue: id, ...given }: Fields, ofModel: Found | null, path: PropertyKey[], problems: string[]): Fields {
  const isOfModel = ofModel !== null && (given.provider === undefined || given.provider === ofModel.provider);
  const found = id === undefined ? (isOfModel ? ofModel : null) : entryOf(id, path, problems);
  if (found === null) return given;
  const { name: _, description: __, embeddings: ___, ...facts } = found.entry;
  const known: Fields = { provider: found.provider, upstream_model: found.name, ...facts };
  return overriding(known, { ...given, ...(isFields(given.prices) && { prices: overriding(facts.prices ?? {}, given.prices) }) });
}

/** Fields of the second, and of the first those that the second leaves out; null leaves out both. */
function overriding(known: Fields, given: Fields): Fields {
  const stated = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return Object.fromEntries(Object.entries({ ...known, ...stated }).filter(([, value]) => value !== undefined && value !== null));
}

function entryOf(id: unknown, path: PropertyKey[], problems: string[]): Found | null {
  if (id === undefined) return null;
  const place = formatPath([...path, 'catalogue']);
  if (typeof id !== 'string') {
    problems.push(`${place}: must be a string, the id of a model of the catalogue`);
    return null;
  }
  const { models } = catalogue();
  const found = Object.hasOwn(models, id) ? models[id] : undefined;
  if (found === undefined) {
    problems.push(`${place}: there is no model ${quotedName(id)} in the catalogue (catalogue/models.json)`);
    return null;
  }
  return { ...partsOfId(id), entry: found };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
