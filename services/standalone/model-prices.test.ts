import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { providerBlock } from '#services/router-worker/providers/registry.ts';
import { checkRouterConfig } from '#shared/config/load-router-config.ts';
import { builtInRouter } from './built-in-router.ts';
import { type ModelPrices, priceWarnings, readModelPrices } from './model-prices.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'prices-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function read(text: string): Promise<ModelPrices> {
  const path = join(folder, 'prices.yaml');
  await writeFile(path, text);
  return readModelPrices(path);
}

const upstream = { baseUrl: 'http://127.0.0.1:9/v1', provider: { slug: 'local', name: 'Local' }, hasKey: false, models: ['small', 'large'] };
const routerWith = (prices: ModelPrices | null) =>
  checkRouterConfig(
    builtInRouter({ openAi: upstream, prices }),
    { ROUTER_API_KEY: 'r', ROUTER_MANAGEMENT_KEY: 'm' },
    { secrets: 'all', provider: providerBlock },
  );
const pricesOf = (prices: ModelPrices | null) => routerWith(prices).models.map(({ id, endpoints }) => [id, endpoints[0]?.prices]);
const warningsFor = (prices: ModelPrices | null) => priceWarnings(routerWith(prices), prices);

it('are those of the file, by id or alias of the model, and there are none without it', async () => {
  const prices = await read('local/small: { prompt: "0.25", completion: "2" }\nlarge: { prompt: "3", completion: "15", cache_write_1h: "6" }\n');
  expect(pricesOf(prices)).toEqual([
    ['local/small', { prompt: '0.25', completion: '2' }],
    ['local/large', { prompt: '3', completion: '15', cache_write_1h: '6' }],
  ]);
  expect(pricesOf(null)).toEqual([
    ['local/small', undefined],
    ['local/large', undefined],
  ]);
});

it('go by the id where the file has both', async () => {
  expect(pricesOf(await read('small: { prompt: "9", completion: "9" }\nlocal/small: { prompt: "1", completion: "2" }'))[0]).toEqual([
    'local/small',
    { prompt: '1', completion: '2' },
  ]);
});

it('are refused with the place of each error', async () => {
  const text =
    'a: { prompt: 0.25, completion: "2" }\nb: { prompt: "1", completion: "-2" }\nc: { prompt: "1" }\nd: { prompt: "1", completion: "2", promt: "1" }';
  for (const place of ['a.prompt', 'b.completion', 'c.completion', 'd.promt']) await expect(read(text)).rejects.toThrow(place);
  await expect(read('- a')).rejects.toThrow('prices.yaml');
  await expect(readModelPrices(join(folder, 'missing.yaml'))).rejects.toMatchObject({ code: 'config.invalid' });
});

it('say what keys with a limit lack, and what to do', async () => {
  const warningsOf = (...names: string[]) => warningsFor(new Map(names.map((name) => [name, { prompt: '1', completion: '2' }])));
  expect(warningsFor(null)).toEqual([expect.stringMatching(/\(local\/small, local\/large\): .*ROUTER_PRICES.*examples\/router-prices\.yaml/)]);
  expect(warningsOf('small')).toEqual([expect.stringMatching(/\(local\/large\): add their prices to the file of ROUTER_PRICES/)]);
  expect(warningsOf('local/small', 'large')).toEqual([]);
  expect(warningsOf('small', 'large', 'locl/small')).toEqual([expect.stringMatching(/no model "locl\/small"/)]);
});

it('are asked of no scripted model', () => {
  const config = checkRouterConfig(
    builtInRouter({ openAi: null }),
    { ROUTER_API_KEY: 'r', ROUTER_MANAGEMENT_KEY: 'm' },
    { secrets: 'all', provider: providerBlock },
  );
  expect(priceWarnings(config, null)).toEqual([]);
});

it('of the example are read', async () => {
  expect([...(await readModelPrices('examples/router-prices.yaml')).keys()]).toContain('openai/gpt-5-mini');
});
