import type { Bus } from '#bus/bus.ts';
import { onKeyChanged } from '#bus/key-notices.ts';
import { RunningItems } from '#services/work/running-items.ts';
import { startWorker } from '#services/work/start-worker.ts';
import { type Clock, steadyClock } from '#shared/clock.ts';
import { type Given, livingOf } from '#shared/config/living.ts';
import { type GivenRouterConfig, livingRouterConfig } from '#shared/config/loaded-router-config.ts';
import type { MailConfig } from '#shared/config/mail-settings.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { Reservations } from '#shared/credit/reservations.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import type { CallerKey } from '#shared/keys/caller-key.ts';
import { openKeyDirectory } from '#shared/keys/open-key-directory.ts';
import type { PlatformRouter } from '#shared/keys/platform-router.ts';
import type { Drained } from '#shared/lifecycle/drained.ts';
import { RateLimits } from '#shared/rates/rate-limits.ts';
import { TokenCorrections } from '#shared/rates/token-corrections.ts';
import type { Cache } from '#shared/storage/cache.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { type Metrics, noMetrics } from '#shared/telemetry/metrics.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import { Health } from './call/health/health.ts';
import { HealthExchange } from './call/health/health-exchange.ts';
import { StickyEndpoints } from './call/sticky-endpoints.ts';
import { VectorBudget } from './call/vector-budget.ts';
import { type CallItemsDeps, callItems } from './call-items.ts';
import { CallRates } from './call-rates.ts';
import { CallWatch } from './call-watch.ts';
import { InterimRecords } from './interim/interim-records.ts';
import { startLedger } from './ledger/ledger.ts';
import { startMails } from './mails/mails.ts';
import { smtpMailer } from './mails/smtp-mailer.ts';
import { sharedEngines } from './pipeline/engines.ts';
import { PdfProcesses } from './pipeline/files/pdf-texts.ts';
import { PlatformCalls } from './platform/platform-calls.ts';
import type { OpenedAdapter } from './providers/provider.ts';
import { openSetup } from './router-setup.ts';
import { Setups } from './setups.ts';
import { SharedOpened } from './shared-opened.ts';

/** In flight; they mostly wait for upstreams. Shares per kind keep clients from starving conversations. */
export const DEFAULT_CONCURRENCY = { clientCalls: 1_024, turnCalls: 256 };
/** Byte budgets of requests, held as read and again while sent: a worker stays within a gigabyte. */
const DEFAULT_BODY_BYTES = { clientCalls: 256 * 1024 * 1024, turnCalls: 128 * 1024 * 1024 };
const DEFAULT_DRAIN_TIMEOUT_MS = 30_000;

export interface RouterWorkerDeps {
  config: GivenRouterConfig;
  environment: Environment;
  bus: Bus;
  /** Has the state of actors' effects, for redelivered calls, and the ledger. */
  database: Database;
  /** Null: none. */
  cache: Cache | null;
  /** By hash; the others are rows. Absent: none. */
  fileKeys?: Given<ReadonlyMap<string, CallerKey>>;
  log: Log;
  clock: Clock;
  /** For lengths of time, which setting a machine's clock leaves alone. Absent: this process's. */
  intervalClock?: Clock;
  /** The database's clock, for deadlines of actors' calls; absent: `clock`. Gateways have no database, so clients' calls use `clock`. */
  actorClock?: Clock;
  concurrency?: { clientCalls: number; turnCalls: number };
  bodyBytes?: { clientCalls: number; turnCalls: number };
  /** Null or absent: mails wait. */
  mail?: MailConfig | null;
  /** Words per second of the scripted model's streams; 0 or absent: unpaced. */
  scriptedWordsPerSecond?: number;
  /** Exact host:port pairs at which pictures may be fetched by http and from private addresses; absent: none. */
  outboundAllowHosts?: ReadonlySet<string>;
  /** Where the agent's model calls are executed; null or absent: here. */
  platform?: PlatformRouter | null;
  /** How long a stop waits for calls in flight before it nacks them. */
  drainTimeoutMs?: number;
  metrics?: Metrics;
  tracing?: Tracing;
}

/** Executes router calls of clients and of actors, writes the ledger of all calls, and sends the mails of the queue. @throws `config.invalid` naming the variable of a missing credential */
export async function startRouterWorker(deps: RouterWorkerDeps): Promise<Drained> {
  const {
    config,
    environment,
    bus,
    database,
    cache,
    log,
    clock,
    actorClock = clock,
    intervalClock = steadyClock,
    drainTimeoutMs = DEFAULT_DRAIN_TIMEOUT_MS,
    metrics = noMetrics,
    tracing = noTracing,
  } = deps;
  const { concurrency = DEFAULT_CONCURRENCY, bodyBytes = DEFAULT_BODY_BYTES, scriptedWordsPerSecond = 0, outboundAllowHosts = new Set() } = deps;
  const opening = {
    environment,
    clock,
    cache,
    log,
    scriptedWordsPerSecond,
    outboundRules: { allowHosts: outboundAllowHosts },
    shared: new SharedOpened<OpenedAdapter>(),
    sharedEngines: sharedEngines(),
  };
  const setup = livingRouterConfig(config).derive(
    (loaded) => openSetup(loaded, opening),
    (opened) => void opened.close(),
  );
  const setups = new Setups({ setup, log });
  const platformCalls = deps.platform ? new PlatformCalls({ router: deps.platform, environment, clock }) : null;
  const running = new RunningItems();
  const watch = new CallWatch({ bus, clock });
  const keys = openKeyDirectory({ fileKeys: livingOf(deps.fileKeys ?? new Map()), database, log });
  const notices = onKeyChanged(bus, keys.forget);
  const reservations = new Reservations({ database, log, metrics, clock: actorClock });
  const interims = new InterimRecords({ database, log });
  const rates = new RateLimits({ cache, clock, log, metrics });
  const tokenCorrections = cache === null ? null : new TokenCorrections(cache);
  const health = new Health({ clock: intervalClock, log, metrics });
  const texts = new PdfProcesses();
  const getter = openOutbound(environment).openGetter({ rules: opening.outboundRules });
  const exchange = cache === null ? null : new HealthExchange({ cache, health, clock: intervalClock, log });
  exchange?.start();
  const calls: CallItemsDeps = {
    bus,
    tokenCorrections,
    interims,
    reservations,
    rates: new CallRates({ rates, clock: actorClock }),
    clock,
    actorClock,
    log,
    metrics,
    tracing,
    keys,
    watch,
    setups,
    platformCalls,
    vectorBudget: new VectorBudget(),
    files: { texts, getter },
    health,
    sticky: new StickyEndpoints({ cache, health, clock: intervalClock, log }),
  };
  const kinds = [
    callItems('router.call', { concurrency: concurrency.clientCalls, bodyBytes: bodyBytes.clientCalls }, calls),
    callItems('router.turn', { concurrency: concurrency.turnCalls, bodyBytes: bodyBytes.turnCalls }, calls),
  ];
  const worker = startWorker(kinds, { bus, database, clock, log, metrics, tracing, running, drainTimeoutMs });
  const mails = startMails({ database, mailer: deps.mail ? smtpMailer(deps.mail) : null, log, metrics });
  const ledger = startLedger({ usage: bus.usage, database, clock: actorClock, log, metrics });
  return {
    async stop(withinMs) {
      await worker.stop(withinMs);
      interims.stop();
      await platformCalls?.close();
      rates.stop();
      await tokenCorrections?.stop();
      exchange?.stop();
      health.stop();
      await reservations.stop();
      await Promise.all([ledger.stop(), mails.stop()]);
      await notices.stop();
      await watch.stop();
      await Promise.all([setups.stop(), texts.close(), getter.close()]);
    },
  };
}
