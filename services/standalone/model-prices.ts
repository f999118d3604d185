import { z } from 'zod';
import { check, configInvalid, sentenceOf } from '#shared/config/problems.ts';
import { readDocumentFile } from '#shared/config/read-document-file.ts';
import { type EndpointPrices, endpointPrices, type RouterConfig } from '#shared/config/router-config.ts';
import { quotedName } from '#shared/contracts/printed-name.ts';

/** By id of the model, or by its name at the upstream. */
export type ModelPrices = ReadonlyMap<string, EndpointPrices>;

const MAX_NAMES = 6;
const modelPrices = z.record(z.string(), endpointPrices);

/** Reads the file of ROUTER_PRICES, YAML or JSON. @throws `config.invalid` listing every error */
export async function readModelPrices(path: string): Promise<ModelPrices> {
  const { value, problems } = await readDocumentFile(path);
  if (problems.length > 0) throw configInvalid(path, problems);
  const { value: prices, problems: faults } = check(modelPrices, value);
  if (prices === null) throw configInvalid(path, faults.map(sentenceOf));
  return new Map(Object.entries(prices));
}

/**
 * What the router that is built in lacks for keys with a credit limit: sentences with what to do.
 * @param prices null: ROUTER_PRICES is not set
 */
export function priceWarnings({ models }: Pick<RouterConfig, 'models'>, prices: ModelPrices | null): string[] {
  const known = new Set(models.flatMap(({ id, aliases }) => [id, ...aliases]));
  const unknown = [...(prices ?? new Map()).keys()].filter((name) => !known.has(name));
  const unpriced = models.filter(({ endpoints }) => endpoints.every((endpoint) => endpoint.prices === undefined)).map(({ id }) => id);
  const warnings: string[] = [];
  if (unknown.length > 0) warnings.push(`ROUTER_PRICES: the router has no model ${namesOf(unknown.map(quotedName))}, so its prices have no effect`);
  if (unpriced.length > 0) {
    const todo =
      prices === null
        ? 'to let them, set ROUTER_PRICES to a file with prices of your contract, as in examples/router-prices.yaml'
        : 'add their prices to the file of ROUTER_PRICES';
    warnings.push(`Keys with a credit limit can't call models without prices (${namesOf(unpriced)}): ${todo}`);
  }
  return warnings;
}

function namesOf(names: readonly string[]): string {
  const listed = names.slice(0, MAX_NAMES).join(', ');
  return names.length > MAX_NAMES ? `${listed} and ${names.length - MAX_NAMES} more` : listed;
}
