import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { corrections } from './catalogue-corrections.mjs';
import { isProgram, runScript, ScriptError } from './run-script.mjs';

/**
 * Writes catalogue/models.json from the price data of @pydantic/genai-prices and from scripts/catalogue-corrections.mjs. To update it: a new version of the
 * package in package.json, its date and the models in the corrections, then `node scripts/update-catalogue.mjs`.
 */

const PACKAGE = '@pydantic/genai-prices';
const require = createRequire(import.meta.url);
const FILE = fileURLToPath(new URL('../catalogue/models.json', import.meta.url));

/** @typedef {number | { base: number, tiers: { start: number, price: number }[] } | undefined} Amount per million tokens, or per thousand of others */
/** @typedef {Readonly<Record<string, Amount>>} Prices */
/** @typedef {{ constraint?: { type: string, start_date?: string }, prices: Prices }} ConditionalPrices */
/** @typedef {{ id: string, name?: string, context_window?: number, prices: Prices | ConditionalPrices[] }} PricedModel */

/** Ours, of the package's; searches are priced by the thousand. */
const PRICES = /** @type {const} */ ([
  ['prompt', 'input_mtok', 1],
  ['completion', 'output_mtok', 1],
  ['cached_prompt', 'cache_read_mtok', 1],
  ['cache_write', 'cache_write_mtok', 1],
  ['cache_write_1h', 'cache_write_1h_mtok', 1],
  ['web_search', 'web_searches_kcount', 1_000],
]);
const PLACES = 9;

/** The text of the file. @throws {ScriptError} for a model that neither the package nor the corrections know */
export function catalogueText() {
  const { date, providers, shared } = corrections;
  /** @type {Record<string, object>} */
  const models = {};
  for (const [slug, provider] of Object.entries(providers)) {
    const priced = new Map(pricedModels(provider.from).map((model) => [model.id, model]));
    for (const [name, own] of Object.entries(provider.models)) models[`${slug}/${name}`] = entryOf(name, priced.get(name) ?? null, { ...provider.all, ...own });
  }
  const listed = Object.entries(providers).map(([slug, { from: _, all: __, models: ___, ...facts }]) => [slug, facts]);
  return `{
  "date": ${JSON.stringify(date)},
  "source": ${JSON.stringify(`${PACKAGE} ${packageVersion()}`)},
  "providers": ${lines(listed)},
  "models": ${lines(Object.entries(models))},
  "shared": ${lines(Object.entries(shared))}
}
`;
}

/** An entry a line, so that changes can be read. @param {readonly (readonly unknown[])[]} entries */
function lines(entries) {
  return `{\n${entries.map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`).join(',\n')}\n  }`;
}

/**
 * @param {string} name
 * @param {PricedModel | null} priced
 * @param {import('./catalogue-corrections.mjs').ModelCorrection} corrected
 */
function entryOf(name, priced, corrected) {
  if (priced === null && corrected.name === undefined) throw new ScriptError(`${PACKAGE} does not have ${name}, and the corrections have no name for it`);
  const prices = priced === null ? null : pricesAt(priced.prices, corrections.date);
  const isEmbedding = corrected.dimensions !== undefined;
  const context = contextOf(corrected.context ?? priced?.context_window, prices);
  return {
    name: corrected.name ?? priced?.name ?? name,
    ...(isEmbedding && { embeddings: { dimensions: corrected.dimensions, ...(corrected.shortens !== undefined && { shortens: corrected.shortens }) } }),
    ...(prices !== null && { prices: pricesOf(prices, isEmbedding) }),
    ...(context !== undefined && { context_length: context }),
    ...(!isEmbedding && {
      ...(corrected.completion !== undefined && { max_completion_tokens: corrected.completion }),
      modalities: corrected.modalities ?? [],
      supported_parameters: [...(corrected.parameters ?? [])].sort(),
    }),
  };
}

/** Those that apply on a date. Where they differ by the time of the day: the dearest, so that no call is billed too low. @param {PricedModel['prices']} prices @param {string} date */
function pricesAt(prices, date) {
  if (!Array.isArray(prices)) return prices;
  const begun = prices.filter(({ constraint }) => constraint === undefined || constraint.type !== 'start_date' || (constraint.start_date ?? '') <= date);
  const [latest, ...others] = [
    ...begun.filter(({ constraint }) => constraint?.type === 'start_date').slice(-1),
    ...begun.filter(({ constraint }) => constraint?.type === 'time_of_date'),
    ...begun.filter(({ constraint }) => constraint === undefined),
  ].map((one) => one.prices);
  const candidates = begun.some(({ constraint }) => constraint?.type === 'time_of_date') ? [latest, ...others] : [latest];
  return candidates.reduce((dearest, one) => (baseOf(one?.input_mtok) > baseOf(dearest?.input_mtok) ? one : dearest)) ?? {};
}

/** @param {Amount} amount */
function baseOf(amount) {
  return amount === undefined ? 0 : typeof amount === 'number' ? amount : amount.base;
}

/** An endpoint has one price: its context ends where a dearer one begins. @param {number | undefined} context @param {Prices | null} prices */
function contextOf(context, prices) {
  const starts = Object.values(prices ?? {}).flatMap((amount) => (typeof amount === 'object' ? amount.tiers.map(({ start }) => start) : []));
  const known = [...starts, ...(context === undefined ? [] : [context])];
  return known.length === 0 ? undefined : Math.min(...known);
}

/** @param {Prices} prices @param {boolean} isEmbedding which completes nothing */
function pricesOf(prices, isEmbedding) {
  const given = PRICES.flatMap(([ours, theirs, per]) => (prices[theirs] === undefined ? [] : [[ours, decimal(baseOf(prices[theirs]) / per)]]));
  const known = Object.fromEntries(given);
  return isEmbedding ? { prompt: known.prompt, completion: '0' } : known;
}

/** @param {number} amount */
function decimal(amount) {
  return amount
    .toFixed(PLACES)
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '');
}

/** @param {string} id @returns {PricedModel[]} */
function pricedModels(id) {
  const found = require('@pydantic/genai-prices').findProvider({ providerId: id });
  if (!found) throw new ScriptError(`${PACKAGE} has no provider ${id}`);
  return found.models;
}

/** As pinned. @returns {string} */
function packageVersion() {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).devDependencies[PACKAGE];
}

if (isProgram(import.meta.url)) await runScript(async () => writeFileSync(FILE, catalogueText()));
