import { z } from 'zod';
import { SECRET_REF } from '../contracts/manifest/secret-ref.ts';
import { quotedName } from '../contracts/printed-name.ts';
import { hashOfSecret } from '../keys/caller-key.ts';
import { hashInReference } from '../keys/key-reference.ts';
import { withCatalogue } from './catalogue.ts';
import { type LoadedRouterConfig, loadedRouterConfig } from './loaded-router-config.ts';
import { check, configInvalid, formatPath, sentenceOf } from './problems.ts';
import { providerSecrets } from './provider-secrets.ts';
import { readDocumentFile } from './read-document-file.ts';
import { type ProviderConfig, type RouterConfig, routerConfig, routerConfigLimits, routerConfigWith } from './router-config.ts';
import { type Environment, resolveSecret, variableOf } from './secret-ref.ts';
import { slugsOf } from './slugs.ts';
import { tolerantList, tolerantObject, tolerantText } from './tolerant.ts';

export interface RouterConfigUse {
  /** Credentials that must be set: a gateway needs the callers' keys, a worker (`calls`) the providers' and those of the keys that call models. */
  secrets: 'keys' | 'calls' | 'all';
  /** Of a provider's whole block. Absent, as in a gateway: of a block only slug, name and kind are read. */
  provider?: z.ZodType<ProviderConfig>;
}

/** Reads the router's configuration from a YAML or JSON file. @throws `config.invalid` listing every error */
export async function loadRouterConfig(path: string, environment: Environment, use: RouterConfigUse, read = readDocumentFile): Promise<LoadedRouterConfig> {
  const { value, problems } = await read(path);
  if (problems.length > 0) throw configInvalid(path, problems);
  return loadedRouterConfig(checked(value, environment, path, use), value);
}

/** The same checks for a configuration made in code. @throws `config.invalid` */
export function checkRouterConfig(value: unknown, environment: Environment, use: RouterConfigUse): RouterConfig {
  return checked(value, environment, "the router's configuration", use);
}

function checked(given: unknown, environment: Environment, subject: string, { secrets, provider }: RouterConfigUse): RouterConfig {
  const { value, problems: unknownEntries } = withCatalogue(given);
  const { value: config, problems } = check(provider === undefined ? routerConfig : routerConfigWith(provider), value);
  const lines = [...unknownEntries, ...problems.map(sentenceOf)];
  const report: Report = (path, message) => lines.push(`${formatPath(path)}: ${message}`);
  // Even when the schema found errors, so that one start reports all mistakes.
  const outline = routerOutline.parse(value);
  if (outline !== null) {
    checkNames(outline, report);
    checkEndpointCount(outline, report);
    checkKnownProviders(outline, report);
    checkTags(outline, report);
    checkRules(outline, report);
    checkKeyLimits(outline, report);
    if (secrets !== 'keys') {
      checkProviderSecrets(outline, environment, report);
      for (const { path, reference } of providerSecrets(outline.plugins)) secretAt(reference, ['plugins', ...path], environment, report);
    }
    checkKeySecrets(outline, environment, report, { exceptManagement: secrets === 'calls' });
  }
  if (config === null || lines.length > 0) throw configInvalid(subject, lines);
  return config;
}

type Report = (path: PropertyKey[], message: string) => void;

const tolerantRules = tolerantObject({ allowed_providers: tolerantList(tolerantText), ignored_providers: tolerantList(tolerantText) });

const routerOutline = tolerantObject({
  providers: tolerantList(z.looseObject({ slug: tolerantText })),
  models: tolerantList(
    tolerantObject({
      id: tolerantText,
      aliases: tolerantList(tolerantText),
      embeddings: z.unknown().optional(),
      hedge: z.unknown().optional(),
      endpoints: tolerantList(tolerantObject({ provider: tolerantText, tag: tolerantText, max_inputs: z.unknown().optional() })),
    }),
  ),
  default_model: tolerantText,
  account: tolerantRules,
  plugins: z.unknown().optional(),
  keys: tolerantList(
    tolerantObject({
      id: tolerantText,
      key: tolerantText,
      disabled: z.unknown().optional(),
      management: z.unknown().optional(),
      limit: z.unknown().optional(),
      limit_reset: z.unknown().optional(),
      limits: z.unknown().optional(),
      account: tolerantRules,
    }),
  ),
});
type Outline = NonNullable<z.infer<typeof routerOutline>>;

function checkNames({ providers, models, keys, default_model: defaultModel }: Outline, report: Report): void {
  refuseRepeats(providers?.map((provider, index) => [provider?.slug, ['providers', index, 'slug']]) ?? [], report);
  refuseRepeats(keys?.map((key, index) => [key?.id, ['keys', index, 'id']]) ?? [], report);
  // Callers use ids and aliases alike, so they share one namespace.
  const names = (models ?? []).flatMap((model, index): Named[] => [
    [model?.id, ['models', index, 'id']],
    ...(model?.aliases ?? []).map((alias, position): Named => [alias, ['models', index, 'aliases', position]]),
  ]);
  refuseRepeats(names, report);
  if (defaultModel !== null && models !== null && !names.some(([name]) => name === defaultModel)) {
    report(['default_model'], 'must be the id or an alias of a model');
  }
  checkKinds({ models, default_model: defaultModel }, report);
}

/** Chats without a model get the default. */
function checkKinds({ models, default_model: defaultModel }: Pick<Outline, 'models' | 'default_model'>, report: Report): void {
  models?.forEach((model, index) => {
    if (model === null) return;
    if (model.embeddings !== undefined) {
      if (model.hedge === true) report(['models', index, 'hedge'], 'has no effect: a model with embeddings is not hedged');
      if (defaultModel !== null && (model.id === defaultModel || model.aliases?.includes(defaultModel) === true)) {
        report(['default_model'], 'must be a model that chats, and not one with embeddings');
      }
      return;
    }
    model.endpoints?.forEach((endpoint, position) => {
      if (endpoint?.max_inputs !== undefined) {
        report(['models', index, 'endpoints', position, 'max_inputs'], 'has no effect: the model has no embeddings');
      }
    });
  });
}

function checkEndpointCount({ models }: Outline, report: Report): void {
  const count = models?.reduce((sum, model) => sum + (model?.endpoints?.length ?? 0), 0) ?? 0;
  if (count > routerConfigLimits.allEndpoints) report(['models'], `must have at most ${routerConfigLimits.allEndpoints} endpoints in all, and has ${count}`);
}

type Named = [name: string | null | undefined, path: PropertyKey[]];

function refuseRepeats(names: readonly Named[], report: Report): void {
  const seen = new Map<string, PropertyKey[]>();
  for (const [name, path] of names) {
    if (name === null || name === undefined) continue;
    const first = seen.get(name);
    if (first === undefined) seen.set(name, path);
    else report(path, `repeats ${quotedName(name)}, which ${formatPath(first)} already uses`);
  }
}

function checkKnownProviders({ providers, models }: Outline, report: Report): void {
  if (providers === null) return;
  const known = new Set(providers.map((provider) => provider?.slug));
  models?.forEach((model, index) => {
    model?.endpoints?.forEach((endpoint, position) => {
      const slug = endpoint?.provider;
      if (slug !== null && slug !== undefined && !known.has(slug))
        report(['models', index, 'endpoints', position, 'provider'], `there is no provider ${quotedName(slug)}`);
    });
  });
}

function checkTags({ models }: Outline, report: Report): void {
  models?.forEach((model, index) => {
    model?.endpoints?.forEach((endpoint, position) => {
      const { provider = null, tag = null } = endpoint ?? {};
      if (provider === null || tag === null || slugsOf(tag).includes(provider)) return;
      report(['models', index, 'endpoints', position, 'tag'], `must be the provider's slug, or begin with it: ${quotedName(`${provider}/…`)}`);
    });
  });
}

/** A slug that names no endpoint would forbid or permit nothing, unnoticed. */
function checkRules({ providers, models, account, keys }: Outline, report: Report): void {
  if (providers === null || models === null) return;
  const tags = [...providers.map((provider) => provider?.slug), ...models.flatMap((model) => model?.endpoints?.map((endpoint) => endpoint?.tag) ?? [])];
  const known = new Set(tags.flatMap((tag) => (tag === null || tag === undefined ? [] : slugsOf(tag))));
  const check = (rules: Outline['account'], path: PropertyKey[]) => {
    for (const list of ['allowed_providers', 'ignored_providers'] as const) {
      rules?.[list]?.forEach((slug, position) => {
        if (slug !== null && !known.has(slug)) report([...path, list, position], `there is no provider ${quotedName(slug)}`);
      });
    }
  };
  check(account, ['account']);
  keys?.forEach((key, index) => {
    check(key?.account ?? null, ['keys', index, 'account']);
  });
}

function checkProviderSecrets({ providers }: Outline, environment: Environment, report: Report): void {
  providers?.forEach((provider, index) => {
    for (const { path, reference } of providerSecrets(provider)) secretAt(reference, ['providers', index, ...path], environment, report);
  });
}

function checkKeySecrets({ keys }: Outline, environment: Environment, report: Report, { exceptManagement }: { exceptManagement: boolean }): void {
  const owners = new Map<string, PropertyKey[]>();
  keys?.forEach((key, index) => {
    const path = ['keys', index, 'key'];
    if (exceptManagement && key?.management === true) return;
    // A disabled key admits no caller, so its variable may be unset already.
    const hash = keyHashAt(key?.key, path, environment, key?.disabled === true ? () => {} : report);
    if (hash === null) return;
    // The secret identifies the caller, so two keys can't share one.
    const owner = owners.get(hash);
    if (owner === undefined) owners.set(hash, path);
    else report(path, `has the same value as ${formatPath(owner)}`);
  });
}

/** @returns null when there is none */
function keyHashAt(reference: string | null | undefined, path: PropertyKey[], environment: Environment, report: Report): string | null {
  const given = hashInReference(reference ?? '');
  if (given !== null) return given;
  const secret = secretAt(reference, path, environment, report)?.trim();
  return secret === undefined ? null : hashOfSecret(secret);
}

/** A field that would have no effect is a mistake. */
function checkKeyLimits({ keys }: Outline, report: Report): void {
  keys?.forEach((key, index) => {
    if (key === null) return;
    if (key.limit_reset !== undefined && key.limit === undefined) report(['keys', index, 'limit_reset'], 'needs a limit');
    if (key.management !== true) return;
    for (const name of ['limit', 'limits', 'account'] as const)
      if ((key[name] ?? null) !== null) report(['keys', index, name], 'has no effect: a management key calls no model');
  });
}

/** @returns null when there is none; an unset variable is reported by its name */
function secretAt(reference: string | null | undefined, path: PropertyKey[], environment: Environment, report: Report): string | null {
  if (reference === null || reference === undefined || !SECRET_REF.test(reference)) return null;
  const secret = resolveSecret(reference, environment);
  if (secret === null) report(path, `the environment variable ${variableOf(reference)} is not set`);
  return secret;
}
