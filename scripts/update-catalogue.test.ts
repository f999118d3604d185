import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { providerBlock } from '#services/router-worker/providers/registry.ts';
import { type Catalogue, catalogueFile } from '#shared/config/catalogue.ts';
import { checkRouterConfig } from '#shared/config/load-router-config.ts';
import { catalogueText } from './update-catalogue.mjs';

const text = readFileSync(new URL('../catalogue/models.json', import.meta.url), 'utf8');
const catalogue: Catalogue = catalogueFile.parse(JSON.parse(text));
/** Every process that needs the file reads and checks it whole. */
const MAX_BYTES = 256 * 1024;

describe('catalogue/models.json', () => {
  it('is what the script makes of the pinned price data: run node scripts/update-catalogue.mjs', () => {
    expect(catalogueText()).toBe(text);
    const { devDependencies } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
    expect(catalogue.source).toBe(`@pydantic/genai-prices ${devDependencies['@pydantic/genai-prices']}`);
  });

  it('is small, dated, and has models of every provider that it names', () => {
    expect(Buffer.byteLength(text)).toBeLessThan(MAX_BYTES);
    expect(catalogue.date).toMatch(/^20\d\d-\d\d-\d\d$/);
    const providers = new Set(Object.keys(catalogue.models).map((id) => id.split('/')[0]));
    expect([...providers].toSorted()).toEqual(Object.keys(catalogue.providers).toSorted());
    expect(Object.keys(catalogue.models).length).toBeGreaterThan(50);
  });

  it('has entries that a router file may name, each by its id and at its provider', () => {
    const providers = Object.keys(catalogue.providers).map((slug) => ({ slug, kind: 'openai-compatible', base_url: 'http://127.0.0.1:9/v1' }));
    const models = Object.keys(catalogue.models).map((id) => ({ id, catalogue: id }));
    const shared = Object.entries(catalogue.shared).map(([id, ids]) => ({ id, endpoints: ids.map((one) => ({ catalogue: one })) }));
    const config = checkRouterConfig(
      { providers, models: [...models, ...shared], keys: [{ id: 'k', key: '${KEY}' }] },
      { KEY: 'k' },
      { secrets: 'all', provider: providerBlock },
    );

    for (const { id, embeddings, endpoints } of config.models) {
      for (const { context_length: context, prices, supported_parameters: parameters } of endpoints) {
        expect([id, context === undefined || context >= 2_000]).toEqual([id, true]);
        expect([id, parameters === undefined]).toEqual([id, embeddings !== undefined]);
        if (prices !== undefined) expect([id, Number(prices.prompt) < 100, Number(prices.completion) < 500]).toEqual([id, true, true]);
      }
    }
    expect(config.models).toHaveLength(models.length + shared.length);
  });

  it('has the price that applies at its date, and of several by the time of the day the dearest', () => {
    const pricesOf = (id: string) => catalogue.models[id]?.prices;
    expect(pricesOf('google/gemini-3.8-flash')).toMatchObject({ prompt: '0.75', completion: '3.75' });
    expect(pricesOf('openai/gpt-5.6-sol')).toMatchObject({ prompt: '4', completion: '20' });
    expect(pricesOf('deepseek/deepseek-v4-pro')).toMatchObject({ prompt: '1.32', completion: '3.96' });
    expect(pricesOf('anthropic/claude-haiku-4-5')).toEqual({
      ...{ prompt: '1', completion: '5', cached_prompt: '0.1', cache_write: '1.25', cache_write_1h: '2', web_search: '0.01' },
    });
  });

  it('ends a context where a dearer price begins, since an endpoint has one', () => {
    expect(catalogue.models['google/gemini-2.5-pro']).toMatchObject({ context_length: 200_000, prices: { prompt: '1.25' } });
  });
});
