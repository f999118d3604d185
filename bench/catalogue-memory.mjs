import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { prepare } from '../scripts/prepare.mjs';

const MODELS = 2_000;
const ENDPOINTS = 5;
const MIB = 1024 * 1024;

/** Prints what a router file of 2,000 models with five endpoints each holds of the heap, in a gateway and in a worker: `node bench/catalogue-memory.mjs`. */
async function main() {
  await prepare({ build: true });
  const { checkRouterConfig, gatewaySetup, fixed, catalogueOf, configuredProviders, providerBlock } = await modules();
  setFlagsFromString('--expose-gc');
  /** @type {() => void} */
  const collect = runInNewContext('gc');
  const heapBytes = () => {
    collect();
    collect();
    return process.memoryUsage().heapUsed;
  };
  /** @type {[string, (text: string) => unknown][]} */
  const rows = [
    ['configuration alone', (text) => checkRouterConfig(JSON.parse(text), { KEY: 'k' }, { secrets: 'keys' })],
    [
      'gateway, lists read once',
      (text) => {
        const config = checkRouterConfig(JSON.parse(text), { KEY: 'k' }, { secrets: 'keys' });
        const setup = gatewaySetup(fixed({ config, hash: 'h' }), { KEY: 'k' }).current();
        return [setup, setup.modelLists.all, setup.modelLists.ofKey('k')];
      },
    ],
    [
      'worker',
      (text) => {
        const config = checkRouterConfig(JSON.parse(text), { KEY: 'k' }, { secrets: 'calls', provider: providerBlock });
        return [config, catalogueOf(config, configuredProviders(config))];
      },
    ],
  ];
  rows[0]?.[1](fileText(1));
  for (const [name, make] of rows) {
    console.log(`${name}: ${(heldBytes(make, heapBytes) / MIB).toFixed(1)} MiB`);
    // The row's own variables are gone then.
    await setTimeout(10);
  }
}

/** @param {(text: string) => unknown} make @param {() => number} heapBytes */
function heldBytes(make, heapBytes) {
  const kept = { text: fileText(MODELS), made: /** @type {unknown} */ (null) };
  const before = heapBytes();
  kept.made = make(kept.text);
  const after = heapBytes();
  if (kept.made === null || kept.text === '') throw new Error('nothing was made');
  return after - before;
}

/** As text, so that each configuration has strings of its own. @param {number} models */
function fileText(models) {
  const slugs = Array.from({ length: ENDPOINTS }, (_, at) => `provider-${at}`);
  return JSON.stringify({
    providers: slugs.map((slug) => ({ slug, kind: 'scripted' })),
    models: Array.from({ length: models }, (_, at) => ({
      id: `author-${at % 50}/model-${at}`,
      name: `Model number ${at}`,
      description: `A model of the author ${at % 50}, for chats and for tools, with a description of some length as files have them.`,
      aliases: [`model-${at}`],
      endpoints: slugs.map((provider, index) => ({
        provider,
        upstream_model: `vendor-model-${at}`,
        prices: { prompt: String(at % 9), completion: String(index + 1), cached_prompt: '0.1', cache_write: '0.2' },
        context_length: 128_000,
        max_completion_tokens: 16_000,
        modalities: ['image', 'file'],
        supported_parameters: [
          'max_tokens',
          'max_completion_tokens',
          'temperature',
          'top_p',
          'stop',
          'seed',
          'tools',
          'tool_choice',
          'response_format',
          'reasoning',
        ],
        quantization: 'fp8',
      })),
    })),
    keys: [{ id: 'k', key: '${KEY}' }],
  });
}

async function modules() {
  const dist = (/** @type {string} */ path) => new URL(`../dist/${path}`, import.meta.url).href;
  /** @type {typeof import('../shared/config/load-router-config.ts')} */
  const { checkRouterConfig } = await import(dist('shared/config/load-router-config.js'));
  /** @type {typeof import('../shared/config/living.ts')} */
  const { fixed } = await import(dist('shared/config/living.js'));
  /** @type {typeof import('../services/router-gateway/gateway-setup.ts')} */
  const { gatewaySetup } = await import(dist('services/router-gateway/gateway-setup.js'));
  /** @type {typeof import('../services/router-worker/call/candidates.ts')} */
  const { catalogueOf } = await import(dist('services/router-worker/call/candidates.js'));
  /** @type {typeof import('../services/router-worker/providers/registry.ts')} */
  const { configuredProviders, providerBlock } = await import(dist('services/router-worker/providers/registry.js'));
  return { checkRouterConfig, gatewaySetup, fixed, catalogueOf, configuredProviders, providerBlock };
}

await main();
