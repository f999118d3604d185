import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkRouterConfig, loadRouterConfig } from './load-router-config.ts';
import { routerConfigLimits } from './router-config.ts';

const environment = { ROUTER_API_KEY: 'secret-one' };
const gateway = { secrets: 'keys' } as const;
const scripted = { slug: 'scripted', kind: 'scripted' };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'switchyard-router-limits-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('a file that no process could hold', () => {
  const endpoint = { provider: 'scripted', upstream_model: 'm' };
  const listOf = (count: number, one: (index: number) => unknown) => Array.from({ length: count }, (_, index) => one(index));
  const modelOf = (endpoints: number) => (index: number) => ({ id: `a/${index}`, endpoints: listOf(endpoints, () => endpoint) });
  const document = { providers: [scripted], models: [modelOf(1)(0)], keys: [{ id: 'k', key: '${ROUTER_API_KEY}' }] };

  it.each([
    ['models', { models: listOf(routerConfigLimits.models + 1, modelOf(1)) }, /\n {2}models: must have at most 10000 /],
    ['endpoints of a model', { models: [modelOf(routerConfigLimits.endpoints + 1)(0)] }, /\n {2}models\[0\]\.endpoints: must have at most 100 /],
    ['endpoints', { models: listOf(501, modelOf(100)) }, /\n {2}models: must have at most 50000 endpoints in all, and has 50100$/],
    ['categories', { models: [{ ...modelOf(1)(0), categories: listOf(33, (index) => `c-${index}`) }] }, /\n {2}models\[0\]\.categories: must have at most 32 /],
    ['aliases', { models: [{ ...modelOf(1)(0), aliases: listOf(101, (index) => `alias-${index}`) }] }, /\n {2}models\[0\]\.aliases: must have at most 100 /],
    [
      'providers',
      { providers: [scripted, ...listOf(1_000, (index) => ({ slug: `p${index}`, kind: 'scripted' }))] },
      /\n {2}providers: must have at most 1000 /,
    ],
    [
      'keys',
      { keys: listOf(10_001, (index) => ({ id: `k${index}`, key: `sha256:${index.toString(16).padStart(64, '0')}` })) },
      /\n {2}keys: must have at most 10000 /,
    ],
  ])('is refused for its number of %s', (_, more, expected) => {
    expect(() => checkRouterConfig({ ...document, ...more }, environment, gateway)).toThrow(expected);
    expect(() => checkRouterConfig(document, environment, gateway)).not.toThrow();
  });

  it.each([
    ['of a million endpoints', () => `models: [{ id: a/b, endpoints: [${'{ provider: p, upstream_model: m }, '.repeat(1_000_000)}] }]`, 'larger than'],
    ['of a million endpoints by aliases', millionByAliases, 'aliases expand to more than'],
    ['whose aliases are a cycle', 'models: &m [*m]', 'nested deeper than 64 levels'],
    [
      'with a price that is infinite',
      'models: [{ id: a/b, endpoints: [{ prices: { prompt: 1e999 } }] }]',
      'models[0].endpoints[0].prices.prompt: is a value that JSON cannot represent',
    ],
    [
      'with a price in another form',
      JSON.stringify({ ...document, models: [{ id: 'a/b', endpoints: [{ ...endpoint, prices: { prompt: '1e999', completion: '1' } }] }] }),
      'models[0].endpoints[0].prices.prompt: must be a decimal like "0.15"',
    ],
    [
      'with a price that is a number',
      JSON.stringify({ ...document, models: [{ id: 'a/b', endpoints: [{ ...endpoint, prices: { prompt: 1, completion: '1' } }] }] }),
      'models[0].endpoints[0].prices.prompt: must be a string',
    ],
    [
      'with a repeated model',
      JSON.stringify({ ...document, models: [modelOf(1)(0), modelOf(1)(0)] }),
      'models[1].id: repeats "a/0", which models[0].id already uses',
    ],
    [
      'with an alias that is a model',
      JSON.stringify({ ...document, models: [modelOf(1)(0), { ...modelOf(1)(1), aliases: ['a/0'] }] }),
      'models[1].aliases[0]: repeats "a/0", which models[0].id already uses',
    ],
    [
      'with a repeated slug',
      JSON.stringify({ ...document, providers: [scripted, scripted] }),
      'providers[1].slug: repeats "scripted", which providers[0].slug already uses',
    ],
  ])('is refused %s', async (_, text, expected) => {
    const path = join(folder, 'hostile.yaml');
    await writeFile(path, typeof text === 'string' ? text : text());
    await expect(loadRouterConfig(path, environment, gateway)).rejects.toThrow(expected);
  });
});

/** Ten thousand endpoints, a hundred times. */
function millionByAliases(): string {
  const endpoints = `&e [${'{a: 1},'.repeat(10_000)}]`;
  return `models:\n  - endpoints: ${endpoints}\n${'  - endpoints: *e\n'.repeat(99)}`;
}
