import { prepare } from '../scripts/prepare.mjs';

const CALLS_PER_SECOND = 1_000;
const ROUND_SECONDS = 2;
const WARM_UP = 20_000;
const CALLS = 200_000;
const ROUNDS = 5;
const ENDPOINTS = 100;
const WORKERS = 10;

/** @typedef {import('../services/router-worker/call/health/health.ts').HealthTarget} HealthTarget */

/** Prints what the health of endpoints costs a router worker, in µs of one core: `node bench/health.mjs`. */
async function main() {
  await prepare({ build: true });
  const { Health, HealthExchange, memoryCache, systemClock, silentLog, noMetrics } = await modules();
  const clock = systemClock;
  const newHealth = () => new Health({ clock, log: silentLog, metrics: noMetrics });
  /** @type {HealthTarget[]} */
  const targets = Array.from({ length: ENDPOINTS }, (_, at) => {
    const endpoint = { provider: `p${at}`, upstream_model: 'm' };
    return { model: { id: 'bench/model' }, endpoint, provider: { slug: endpoint.provider } };
  });
  const health = newHealth();
  let made = 0;
  /** One call of a model with two endpoints: its decision reads both, its attempt begins, has content and ends. */
  const call = () => {
    made += 1;
    const target = /** @type {HealthTarget} */ (targets[made % ENDPOINTS]);
    health.of(target);
    health.of(/** @type {HealthTarget} */ (targets[(made + 1) % ENDPOINTS]));
    const attempt = health.begin(target);
    attempt.answered();
    attempt.end({ how: 'succeeded', completionTokens: 100 });
  };
  const perCall = median(() => {
    for (let at = 0; at < CALLS; at += 1) call();
    return CALLS;
  });
  const cache = memoryCache({ clock });
  const others = Array.from({ length: WORKERS - 1 }, () => {
    const other = newHealth();
    return { other, exchange: new HealthExchange({ cache, health: other, clock, log: silentLog }) };
  });
  const own = new HealthExchange({ cache, health, clock, log: silentLog });
  let perRound = 0;
  for (let round = 0; round < 3 * ROUNDS; round += 1) {
    for (const { other, exchange } of others) {
      for (let at = 0; at < 20 * ENDPOINTS; at += 1) {
        const attempt = other.begin(/** @type {HealthTarget} */ (targets[at % ENDPOINTS]));
        attempt.answered();
        attempt.end({ how: 'succeeded', completionTokens: 100 + at });
      }
      await exchange.round();
    }
    const before = process.cpuUsage();
    await own.round();
    const { user, system } = process.cpuUsage(before);
    // Before these the code is not compiled.
    if (round >= 2 * ROUNDS) perRound += (user + system) / ROUNDS;
  }
  const perSecond = perCall * CALLS_PER_SECOND + perRound / ROUND_SECONDS;
  console.log(`one call, two endpoints: ${perCall.toFixed(2)} µs`);
  console.log(`one round with ${WORKERS} workers and ${ENDPOINTS} endpoints each, without Redis: ${perRound.toFixed(0)} µs`);
  console.log(`at ${CALLS_PER_SECOND} calls/s: ${(perSecond / 10_000).toFixed(2)} % of a core`);
}

/** µs of CPU per unit, the median of the rounds. @param {() => number} work returns how many units it has done */
function median(work) {
  for (let at = 0; at < WARM_UP; at += CALLS) work();
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    const units = work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / units;
  });
  return rounds.sort((left, right) => left - right)[Math.floor(ROUNDS / 2)] ?? 0;
}

async function modules() {
  const dist = (/** @type {string} */ path) => new URL(`../dist/${path}`, import.meta.url).href;
  /** @type {typeof import('../services/router-worker/call/health/health.ts')} */
  const { Health } = await import(dist('services/router-worker/call/health/health.js'));
  /** @type {typeof import('../services/router-worker/call/health/health-exchange.ts')} */
  const { HealthExchange } = await import(dist('services/router-worker/call/health/health-exchange.js'));
  /** @type {typeof import('../shared/storage/memory/memory-cache.ts')} */
  const { memoryCache } = await import(dist('shared/storage/memory/memory-cache.js'));
  /** @type {typeof import('../shared/clock.ts')} */
  const { systemClock } = await import(dist('shared/clock.js'));
  /** @type {typeof import('../shared/telemetry/log.ts')} */
  const { silentLog } = await import(dist('shared/telemetry/log.js'));
  /** @type {typeof import('../shared/telemetry/metrics.ts')} */
  const { noMetrics } = await import(dist('shared/telemetry/metrics.js'));
  return { Health, HealthExchange, memoryCache, systemClock, silentLog, noMetrics };
}

await main();
