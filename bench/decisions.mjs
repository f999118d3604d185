import { prepare } from '../scripts/prepare.mjs';

/** @typedef {import('../shared/contracts/router/chat-request.ts').ChatRequest} ChatRequest */

const WARM_UP = 20_000;
const DECISIONS = 50_000;
const ROUNDS = 5;
const ENDPOINTS = 64;

/** @type {ChatRequest['messages']} */
const messages = [
  { role: 'system', content: 'You are a helpful assistant of a shop.' },
  { role: 'user', content: 'Where is my order? I made it a week ago and it has not come.' },
];

/** Each filter is asked for, and each leaves every endpoint. @type {ChatRequest['provider']} */
const allFilters = {
  require_parameters: true,
  data_collection: 'deny',
  zdr: true,
  enforce_distillable_text: true,
  only: ['p'],
  ignore: ['elsewhere'],
  quantizations: ['fp8'],
  max_price: { prompt: 100, completion: 100, request: 1 },
  min_throughput: 1,
  max_latency: 60,
  preferred_min_throughput: { p50: 10, p99: 5 },
  preferred_max_latency: 1,
};

/** Prints what one decision of a router worker costs, in µs of one core: `node bench/decisions.mjs`. */
async function main() {
  await prepare({ build: true });
  const { candidatesFor, catalogueOf, configuredProviders, configuredSpeeds, routerConfig } = await modules();
  /** @param {number} count @param {object} [more] */
  const catalogueWith = (count, more = {}) => {
    const slugs = Array.from({ length: count }, (_, at) => `p/${at}`);
    const config = routerConfig.parse({
      providers: slugs.map((slug) => ({ slug, kind: 'scripted' })),
      models: [{ id: 'bench/model', endpoints: slugs.map((provider, at) => ({ provider, upstream_model: 'm', ...(count > 1 ? dearer(at) : {}) })), ...more }],
      keys: [{ id: 'k', key: '${KEY}' }],
    });
    return catalogueOf(config, configuredProviders(config));
  };
  const one = catalogueWith(1);
  const two = catalogueWith(2);
  const many = catalogueWith(ENDPOINTS, { distillable: true });
  /** @param {import('../services/router-worker/call/candidates.ts').Catalogue} catalogue @param {Partial<ChatRequest>} request */
  const decide = (catalogue, request) => {
    const asked = { request: { model: 'bench/model', messages, ...request }, maxTokens: null };
    const rules = catalogue.rules.of('k');
    let call = 0;
    return () => {
      call += 1;
      const choice = candidatesFor(asked, { catalogue, rules, health: configuredSpeeds, stickyTo: null, seed: `gen-gw1-01JD0000000000000000000000-${call}` });
      // What the first attempt sends.
      return choice.candidates[0]?.request;
    };
  };
  const sampled = { temperature: 1, top_p: 0.9, max_tokens: 500 };
  const rows = [
    ['1 endpoint, no preferences', decide(one, {})],
    ['2 endpoints with prices, no preferences', decide(two, {})],
    [`${ENDPOINTS} endpoints, no preferences`, decide(many, {})],
    [`${ENDPOINTS} endpoints, all filters`, decide(many, { ...sampled, provider: allFilters })],
    [`${ENDPOINTS} endpoints, all filters, sorted by price`, decide(many, { ...sampled, provider: { ...allFilters, sort: 'price' } })],
  ];
  for (const [name, work] of /** @type {[string, () => unknown][]} */ (rows)) console.log(`${name}: ${micros(work).toFixed(2)} µs`);
}

/** @param {number} at */
function dearer(at) {
  return {
    prices: { prompt: String(1 + at), completion: String(2 + at), request: '0.001' },
    context_length: 128_000,
    max_completion_tokens: 16_000,
    quantization: 'fp8',
    supported_parameters: ['temperature', 'top_p', 'max_tokens'],
    speed: { tokens_per_second: 50 + at, first_token_seconds: 0.5 },
  };
}

/** The median of the rounds. @param {() => unknown} work */
function micros(work) {
  for (let at = 0; at < WARM_UP; at += 1) work();
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    for (let at = 0; at < DECISIONS; at += 1) work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / DECISIONS;
  });
  return rounds.sort((left, right) => left - right)[Math.floor(ROUNDS / 2)] ?? 0;
}

async function modules() {
  const dist = (/** @type {string} */ path) => new URL(`../dist/${path}`, import.meta.url).href;
  /** @type {typeof import('../services/router-worker/call/candidates.ts')} */
  const { candidatesFor, catalogueOf } = await import(dist('services/router-worker/call/candidates.js'));
  /** @type {typeof import('../services/router-worker/call/health-view.ts')} */
  const { configuredSpeeds } = await import(dist('services/router-worker/call/health-view.js'));
  /** @type {typeof import('../services/router-worker/providers/registry.ts')} */
  const { configuredProviders } = await import(dist('services/router-worker/providers/registry.js'));
  /** @type {typeof import('../shared/config/router-config.ts')} */
  const { routerConfig } = await import(dist('shared/config/router-config.js'));
  return { candidatesFor, catalogueOf, configuredProviders, configuredSpeeds, routerConfig };
}

await main();
