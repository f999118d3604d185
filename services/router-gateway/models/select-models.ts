import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { ModelList } from '#shared/contracts/router/model-list.ts';
import { type ModelQuery, pageOf } from '#shared/contracts/router/model-query.ts';
import { CREATED_UNKNOWN } from './entries.ts';
import type { MeasuredEndpoints } from './measured.ts';
import type { ListedModel } from './model-lists.ts';

const DAY_SECONDS = 86_400;

type Test = (listed: ListedModel) => boolean;

/**
 * The models that a query asks for, in its order: one page of them, with the path of the next. What is not known of a model counts against it.
 * @param path of the request, without its query
 * @param nowMs for ages, as epoch milliseconds
 */
export function selectModels(
  all: readonly ListedModel[],
  query: Partial<ModelQuery>,
  path: string,
  measured: MeasuredEndpoints,
  nowMs = Date.now(),
): ModelList {
  const tests = testsOf(query, nowMs);
  const found = tests.length === 0 ? all : all.filter((listed) => tests.every((test) => test(listed)));
  const ordered = inOrder(found, query.sort, measured);
  const page = pageOf(query);
  const shown = page === null ? ordered : ordered.slice(page.offset, page.offset + page.limit);
  const nextOffset = page === null ? null : page.offset + page.limit;
  return {
    object: 'list',
    data: shown.map(({ entry }) => entry),
    links: {
      next: page === null || nextOffset === null || nextOffset >= ordered.length ? null : nextPath(path, query, { offset: nextOffset, limit: page.limit }),
    },
    total_count: ordered.length,
  };
}

function nextPath(path: string, query: Partial<ModelQuery>, page: { offset: number; limit: number }): string {
  const given = Object.entries({ ...query, ...page }).flatMap(([name, value]): [string, string][] =>
    value === undefined || value === null ? [] : [[name, String(value)]],
  );
  return `${path}?${new URLSearchParams(given)}`;
}

function testsOf(query: Partial<ModelQuery>, nowMs: number): Test[] {
  const {
    q: search,
    supported_parameters: parameters,
    input_modalities: inputs,
    output_modalities: outputs,
    context,
    arch,
    model_authors: authors,
    providers,
    distillable,
    zdr,
    category,
    region,
  } = query;
  const text = search?.toLowerCase();
  return [
    ...when(
      text,
      (part) =>
        ({ entry: { id, name } }) =>
          id.toLowerCase().includes(part) || name.toLowerCase().includes(part),
    ),
    ...when(
      parameters,
      (names) =>
        ({ entry }) =>
          names.every((name) => entry.supported_parameters.includes(name)),
    ),
    ...when(
      inputs,
      (names) =>
        ({ entry }) =>
          names.every((name) => entry.architecture.input_modalities.includes(name)),
    ),
    ...when(
      outputs,
      (names) =>
        ({ entry }) =>
          names.includes('all') || names.some((name) => entry.architecture.output_modalities.includes(name)),
    ),
    ...when(
      context,
      (least) =>
        ({ entry }) =>
          entry.context_length !== null && entry.context_length >= least,
    ),
    ...when(
      arch,
      (family) =>
        ({ entry }) =>
          entry.architecture.tokenizer.toLowerCase() === family.toLowerCase(),
    ),
    ...when(
      authors,
      (names) =>
        ({ entry }) =>
          names.includes(entry.owned_by.toLowerCase()),
    ),
    ...when(providers, (names) => (listed) => names.some((name) => listed.providers.has(name))),
    ...when(
      distillable,
      (value) =>
        ({ model }) =>
          model.distillable === (value === 'true'),
    ),
    ...when(
      zdr,
      (value) =>
        ({ isZeroRetention }) =>
          value === 'false' || isZeroRetention,
    ),
    ...priceTests(query),
    ...when(
      category?.toLowerCase(),
      (name) =>
        ({ model }) =>
          model.categories?.includes(name) === true,
    ),
    ...when(
      region?.toLowerCase(),
      (name) =>
        ({ model }) =>
          model.endpoints.some((endpoint) => endpoint.region === name),
    ),
    ...ageTests(query, nowMs),
  ];
}

function when<Value>(value: Value | null | undefined, test: (value: Value) => Test): Test[] {
  return value === null || value === undefined ? [] : [test(value)];
}

/** In days since the release. */
function ageTests({ min_age_days: least, max_age_days: most }: Partial<ModelQuery>, nowMs: number): Test[] {
  const test = (isWithin: (days: number) => boolean): Test => {
    return ({ entry: { created } }) => created !== CREATED_UNKNOWN && isWithin((nowMs / 1_000 - created) / DAY_SECONDS);
  };
  return [...when(least, (limit) => test((days) => days >= limit)), ...when(most, (limit) => test((days) => days <= limit))];
}

/** Those that the entry shows: of the first endpoint, in US dollars per million tokens. */
function priceTests({ min_price: least, max_price: most, min_output_price: leastOut, max_output_price: mostOut }: Partial<ModelQuery>): Test[] {
  const test = (isWithin: (price: number) => boolean, name: 'prompt' | 'completion'): Test => {
    return (listed) => {
      const prices = pricesOf(listed);
      return prices !== undefined && isWithin(Number(prices[name]));
    };
  };
  return [
    ...when(least, (limit) => test((price) => price >= limit, 'prompt')),
    ...when(most, (limit) => test((price) => price <= limit, 'prompt')),
    ...when(leastOut, (limit) => test((price) => price >= limit, 'completion')),
    ...when(mostOut, (limit) => test((price) => price <= limit, 'completion')),
  ];
}

function pricesOf({ model }: ListedModel): EndpointConfig['prices'] {
  return model.endpoints[0]?.prices;
}

/** Stable: models that are alike, and those of which the amount is not known, which come last, keep the order of the configuration. */
function inOrder(found: readonly ListedModel[], sort: ModelQuery['sort'], measured: MeasuredEndpoints): readonly ListedModel[] {
  const amountOf = amountFor(sort, measured);
  if (amountOf === null) return found;
  const amounts = new Map(found.map((listed) => [listed, amountOf(listed) ?? Number.POSITIVE_INFINITY]));
  const of = (listed: ListedModel) => amounts.get(listed) ?? Number.POSITIVE_INFINITY;
  return found.toSorted((left, right) => (of(left) === of(right) ? 0 : of(left) - of(right)));
}

/** Lowest first; its null: not known. Null: nothing to order by is known of any model. */
function amountFor(sort: ModelQuery['sort'], measured: MeasuredEndpoints): ((listed: ListedModel) => number | null) | null {
  switch (sort) {
    case 'pricing-low-to-high':
      return meanPrice;
    case 'pricing-high-to-low':
      return (listed) => negated(meanPrice(listed));
    case 'newest':
      return ({ entry: { created } }) => (created === CREATED_UNKNOWN ? null : -created);
    case 'context-high-to-low':
      return ({ entry }) => negated(entry.context_length);
    case 'throughput-high-to-low':
      return ({ model }) =>
        negated(
          most(
            model.endpoints.map((endpoint) => measured.of(endpoint)?.tokensPerSecond?.p50 ?? endpoint.speed?.tokens_per_second ?? null),
            Math.max,
          ),
        );
    case 'latency-low-to-high':
      return ({ model }) =>
        most(
          model.endpoints.map((endpoint) => measured.of(endpoint)?.latencyMs?.p50 ?? milliseconds(endpoint.speed?.first_token_seconds)),
          Math.min,
        );
    default:
      return null;
  }
}

function meanPrice(listed: ListedModel): number | null {
  const prices = pricesOf(listed);
  return prices === undefined ? null : (Number(prices.prompt) + Number(prices.completion)) / 2;
}

function negated(amount: number | null): number | null {
  return amount === null ? null : -amount;
}

function milliseconds(seconds: number | undefined): number | null {
  return seconds === undefined ? null : seconds * 1_000;
}

/** Of the best endpoint. */
function most(amounts: readonly (number | null)[], best: (...numbers: number[]) => number): number | null {
  const known = amounts.filter((amount) => amount !== null);
  return known.length === 0 ? null : best(...known);
}
