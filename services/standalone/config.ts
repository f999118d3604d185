import { dirname, join, resolve } from 'node:path';
import { eventWebhooksOf } from '#shared/config/event-webhook-settings.ts';
import { mailConfigOf } from '#shared/config/mail-settings.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';
import { sweepOf } from '#shared/config/sweep-settings.ts';
import { tracingConfigOf } from '#shared/config/tracing-settings.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { parseAllowHosts } from '#shared/http/outbound-guard.ts';
import { envFileOf, hasSettings } from './env-file-notes.ts';
import { givenSettings } from './given-settings.ts';
import { sampleManifestPath } from './package-folder.ts';
import { upstreamOf } from './upstream.ts';
import { enabledVendors } from './vendors.ts';

/** The settings of `npm start`, explained in scripts/settings.mjs. An empty value counts as not given. */
const shape = settingsOf('standalone');

/** Reads the environment once. Relative paths are resolved against the working directory. @throws `config.invalid` listing every invalid variable */
export function parseConfig(environment: Environment) {
  const data = readSettings(shape, givenSettings(environment));
  const tracing = tracingConfigOf(data);
  const envFile = envFileOf(data.SWITCHYARD_ENV_LINES);
  const manifestPath = data.MANIFEST === undefined ? sampleManifestPath : resolve(data.MANIFEST);
  return {
    host: data.HOST,
    routerPort: data.ROUTER_PORT,
    agentPort: data.AGENT_PORT,
    dataFolder: resolve(data.DATA_DIR),
    manifestPath,
    /** The shipped sample, with generated credentials and a sample question. */
    isSampleAgent: data.MANIFEST === undefined,
    documentsPath: data.DOCUMENTS === undefined ? join(dirname(manifestPath), 'documents') : resolve(data.DOCUMENTS),
    /** Null: the variables of secret bundles are in the environment. */
    secretsPath: data.SECRETS_DIR === undefined ? null : resolve(data.SECRETS_DIR),
    isFolderGiven: data.DOCUMENTS !== undefined,
    routerConfigPath: data.ROUTER_CONFIG === undefined ? null : resolve(data.ROUTER_CONFIG),
    /** Null: no prices. */
    routerPricesPath: pricesPathOf(data),
    /** Null: ROUTER_CONFIG, or neither OPENAI_API_KEY nor OPENAI_BASE_URL. */
    openAi: data.ROUTER_CONFIG === undefined ? upstreamOf(data) : null,
    /** Empty: none, or ROUTER_CONFIG. */
    vendors: data.ROUTER_CONFIG === undefined ? enabledVendors(data) : [],
    scriptedWordsPerSecond: data.SCRIPTED_WORDS_PER_SECOND,
    /** Null: mails wait. */
    mail: mailConfigOf(data),
    /** Null: none is registered. */
    agentPublicUrl: data.AGENT_PUBLIC_URL ?? null,
    streaming: data.STREAMING,
    coalesceMs: data.COALESCE_MS,
    turnTimeoutMs: data.TURN_TIMEOUT_SECONDS * 1_000,
    evaluationParallelism: data.EVAL_NODE_PARALLELISM,
    maxTokens: data.ROUTER_MAX_TOKENS,
    providerOrder: data.LLM_PROVIDER_ORDER ?? [],
    runs: {
      defaultTimeoutMs: data.AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS * 1_000,
      maxTimeoutMs: data.AUTONOMOUS_MAX_TIMEOUT_SECONDS * 1_000,
      requireCallbackAllowlist: data.REQUIRE_CALLBACK_ALLOWLIST,
    },
    maxDeliveryAttempts: data.AUTONOMOUS_CALLBACK_MAX_RETRIES,
    eventWebhooks: eventWebhooksOf(data),
    sweep: sweepOf(data),
    outboundAllowHosts: parseAllowHosts(data.OUTBOUND_ALLOW_HOSTS),
    publicBaseUrl: data.PUBLIC_BASE_URL ?? null,
    drainTimeoutMs: data.SHUTDOWN_DRAIN_TIMEOUT_SECONDS * 1_000,
    /** Null: the manifest's `runtime.log_level`. */
    logLevel: data.LOG_LEVEL ?? null,
    logFormat: data.LOG_FORMAT ?? null,
    tracing,
    passesBaggage: tracing.otel.passesBaggage,
    keepsTraces: data.TRACES_LOCAL,
    /** Null: no management listener. */
    management: data.MANAGEMENT_PORT === undefined ? null : { host: data.MANAGEMENT_HOST, port: data.MANAGEMENT_PORT },
    readyFile: data.SWITCHYARD_READY_FILE ?? null,
    /** Null: no setting was taken from one. */
    envFile: hasSettings(envFile) ? (data.SWITCHYARD_ENV_FILE ?? null) : null,
    /** Null: none was read. */
    envFileLines: envFile,
  } as const;
}

function pricesPathOf({
  ROUTER_PRICES: path,
  ROUTER_CONFIG: router,
}: {
  ROUTER_PRICES?: string | undefined;
  ROUTER_CONFIG?: string | undefined;
}): string | null {
  if (path === undefined) return null;
  if (router === undefined) return resolve(path);
  throw new SwitchyardError('config.invalid', 'ROUTER_PRICES has no effect beside ROUTER_CONFIG: put the prices into that file, as `prices` of its endpoints');
}

export type StandaloneConfig = ReturnType<typeof parseConfig>;
