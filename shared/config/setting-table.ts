import { z } from 'zod';
import { httpUrl } from '../contracts/manifest/hosts.ts';
import { logLevelOf } from '../telemetry/log-levels.ts';
import { eventWebhookKinds, eventWebhookUrl } from './event-webhook-settings.ts';
import { mailFrom, smtpUrl } from './mail-settings.ts';
import { tracesLocal, tracingSettings } from './tracing-settings.ts';

const port = z.coerce.number().int().min(0).max(65_535);
const seconds = z.coerce.number().int().min(1).max(86_400);

/** A longer list is a mistake in a template. */
const MAX_BROKERS = 32;

/** Comma-separated `nats://host:port` of one cluster. */
const natsServers = z.string().superRefine((text, context) => {
  const servers = text.split(',');
  if (servers.length > MAX_BROKERS) context.addIssue({ code: 'custom', message: `must name at most ${MAX_BROKERS} servers` });
  for (const server of servers) {
    const url = URL.canParse(server.trim()) ? new URL(server.trim()) : null;
    if (url === null || !/^(?:nats|tls):$/.test(url.protocol) || url.hostname === '') {
      context.addIssue({ code: 'custom', message: 'must be nats://host:port, or a comma-separated list of the servers of one cluster' });
    } else if (url.username !== '' || url.password !== '') {
      // Each service has its own user at the broker, so one shared URL can't hold it.
      context.addIssue({
        code: 'custom',
        message: 'must not contain a user or a password: the user is the name of the service, its password is NATS_PASSWORD',
      });
    }
  }
});

/** Odd, so that each further pair bears the loss of one more; the broker stores no stream more often. */
const replicas = z.enum(['1', '3', '5']).default('1').transform(Number);

const databaseUrl = urlOf('postgres', 'postgresql');
const redisUrl = urlOf('redis', 'rediss');
const webUrl = urlOf('http', 'https');

/** Names the schemes, since `localhost:11434` is a URL to a parser, of the scheme `localhost`. */
function urlOf(...schemes: [string, string]) {
  const sentence = `must be a URL that starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`;
  return z.url({ protocol: new RegExp(`^(?:${schemes.join('|')})$`), error: ({ input }) => (input === undefined ? undefined : sentence) });
}
const text = z.string().optional();

const logLevel = z
  .string()
  .refine((name) => logLevelOf(name) !== null, 'must be trace, debug, info, warn, error, fatal or silent')
  .optional();
const logFormat = z
  .string()
  .refine((name) => /^(?:text|json)$/i.test(name), 'must be text or json')
  .optional();

/** As many as a request may name. */
const MAX_PROVIDERS = 256;
const MAX_SLUG_CHARACTERS = 128;

/** Comma-separated slugs of providers, as in `provider.order` of a request. */
const providerSlugs = z
  .string()
  .transform((list) => list.split(',').map((slug) => slug.trim()))
  .pipe(
    z
      .array(
        z
          .string()
          .regex(/^[^\s,]+$/, 'must be slugs of providers, separated by commas')
          .max(MAX_SLUG_CHARACTERS),
      )
      .max(MAX_PROVIDERS, `must name at most ${MAX_PROVIDERS} providers`),
  );
const drain = seconds.default(120);

/** Programs that read settings, by their folder in services/. */
const services = ['router-gateway', 'agent-gateway', 'actor-host', 'router-worker', 'effect-worker'] as const;
type Reader = (typeof services)[number] | 'standalone' | 'operator';

/** Services and `npm start`. */
const everywhere = [...services, 'standalone'] as const;
const gateways = ['router-gateway', 'agent-gateway'] as const;
/** Read an agent's configuration. */
const ofAgent = ['agent-gateway', 'actor-host', 'effect-worker'] as const;
const withRouterConfig = ['router-gateway', 'router-worker'] as const;
/** Serve the vendors whose key is set. */
const withModels = ['standalone', 'operator'] as const;

/** The same parser and default in several programs. */
function read<Name extends Reader, Schema extends z.ZodType>(by: readonly Name[], schema: Schema): Record<Name, Schema> {
  return Object.fromEntries(by.map((reader) => [reader, schema])) as Record<Name, Schema>;
}

/**
 * Every setting, an environment variable: which programs read it, with which parser and default. Times are in seconds only where the name says so. To add a
 * setting, add a row here and use it in the `config.ts` of its readers; one of `npm start` has its sentence in scripts/settings.mjs.
 */
const settingTable = {
  NATS_URL: read([...services, 'operator'], natsServers),
  /** Of the service's user. Absent: no authentication, as on a developer's machine. */
  NATS_PASSWORD: read([...services, 'operator'], text),
  /** Servers of the broker's cluster that store each stream. */
  NATS_REPLICAS: read([...services, 'operator'], replicas),
  /** Absent in the router gateway: only the keys of its file; in processes of an agent: the manifest's `database`. */
  DATABASE_URL: { ...read(['router-worker', 'operator'], databaseUrl), ...read([...ofAgent, 'router-gateway'], databaseUrl.optional()) },
  REDIS_URL: { ...read(['agent-gateway'], redisUrl), ...read([...withRouterConfig, 'operator'], redisUrl.optional()) },
  /** Folder of the embedded database. */
  DATA_DIR: { ...read(['standalone'], z.string().default('data')), ...read(['operator'], text) },

  HOST: { ...read(gateways, z.string().default('0.0.0.0')), ...read(['standalone'], z.string().default('127.0.0.1')) },
  PORT: { ...read(['router-gateway'], port.default(3_000)), ...read(['agent-gateway'], port.default(8_080)) },
  ROUTER_PORT: read(['standalone'], port.default(3_000)),
  AGENT_PORT: read(['standalone'], port.default(8_080)),
  /** For probes and scrapers, apart from the public port; 0: any free port. Absent: no listener. */
  MANAGEMENT_PORT: { ...read(services, port.default(9_090)), ...read(['standalone'], port.optional()) },
  MANAGEMENT_HOST: { ...read(services, z.string().default('0.0.0.0')), ...read(['standalone'], z.string().default('127.0.0.1')) },
  /** Absent: `runtime.log_level` of the manifest if the process reads one, else info. */
  LOG_LEVEL: read(everywhere, logLevel),
  /** `text` or `json`; absent: text on a terminal, else JSON. */
  LOG_FORMAT: read(everywhere, logFormat),
  SHUTDOWN_DRAIN_TIMEOUT_SECONDS: read(everywhere, drain),
  /** Whether the process keeps its last traces in memory and shows them. */
  TRACES_LOCAL: { ...read(gateways, tracesLocal.default(false)), ...read(['standalone'], tracesLocal.default(true)) },
  /** File written with the process's addresses once it is ready, for programs that start it. */
  SWITCHYARD_READY_FILE: read(everywhere, text),
  /** The servers that the command line talks to; absent: those that `npm start` runs on DATA_DIR. */
  SWITCHYARD_AGENT_URL: read(['operator'], httpUrl.optional()),
  SWITCHYARD_ROUTER_URL: read(['operator'], httpUrl.optional()),
  /** For programs that start it: the settings file that was read before. */
  SWITCHYARD_ENV_FILE: read(['standalone'], text),
  /** Its lines, without values. */
  SWITCHYARD_ENV_LINES: read(['standalone'], text),

  /** Signs ids; the same in every process that mints or verifies them. `npm start` generates it. */
  HOUSE_SECRET: read([...gateways, 'actor-host', 'operator'], z.string().min(32, 'must have at least 32 characters')),
  ROUTER_CONFIG: { ...read(withRouterConfig, z.string()), ...read(['standalone', 'operator'], text) },
  /** Of the models that are served without ROUTER_CONFIG. */
  ROUTER_PRICES: read(['standalone'], text),
  /** In the router worker: of an agent whose model calls may go to another platform; absent: none. */
  MANIFEST: { ...read(ofAgent, z.string()), ...read(['router-worker', 'standalone'], text) },
  DOCUMENTS: read([...ofAgent, 'standalone'], text),
  /** Folder of the secret bundles that the manifest names; absent: their variables are in the environment. */
  SECRETS_DIR: read([...ofAgent, 'standalone', 'operator'], text),
  PUBLIC_BASE_URL: read([...ofAgent, 'router-worker', 'standalone', 'operator'], webUrl.optional()),
  /** Where the agent gateway is reached, for a manifest with `endpoint: true`. */
  AGENT_PUBLIC_URL: read(['agent-gateway', 'standalone'], httpUrl.optional()),
  PLATFORM_PUBLIC_KEY: read(['router-gateway'], text),
  PLATFORM_SECRET_KEY: read(['router-gateway'], text),

  OPENAI_API_KEY: read(withModels, text),
  OPENAI_BASE_URL: read(withModels, webUrl.optional()),
  OPENAI_MODELS: read(withModels, text),
  OPENAI_PROVIDER_NAME: read(withModels, text),
  ANTHROPIC_API_KEY: read(withModels, text),
  GEMINI_API_KEY: read(withModels, text),
  GROQ_API_KEY: read(withModels, text),
  TOGETHER_API_KEY: read(withModels, text),
  MISTRAL_API_KEY: read(withModels, text),
  DEEPSEEK_API_KEY: read(withModels, text),
  XAI_API_KEY: read(withModels, text),
  /** In place of the vendors' own addresses. */
  ANTHROPIC_BASE_URL: read(withModels, webUrl.optional()),
  GEMINI_BASE_URL: read(withModels, webUrl.optional()),
  GROQ_BASE_URL: read(withModels, webUrl.optional()),
  TOGETHER_BASE_URL: read(withModels, webUrl.optional()),
  MISTRAL_BASE_URL: read(withModels, webUrl.optional()),
  DEEPSEEK_BASE_URL: read(withModels, webUrl.optional()),
  XAI_BASE_URL: read(withModels, webUrl.optional()),
  /** Speed of the scripted model's streams: some three times reading speed, so that words visibly appear. 0: unlimited. */
  SCRIPTED_WORDS_PER_SECOND: read(['router-worker', 'standalone'], z.coerce.number().int().min(0).max(100_000).default(60)),

  /** Absent: mails wait. */
  SMTP_URL: read(['router-worker', 'standalone'], smtpUrl.optional()),
  MAIL_FROM: read(['router-worker', 'standalone'], mailFrom.optional()),

  STREAMING: read(['agent-gateway', 'actor-host', 'standalone'], z.stringbool().default(false)),
  COALESCE_MS: read(['actor-host', 'standalone'], z.coerce.number().int().min(0).max(60_000).default(150)),
  TURN_TIMEOUT_SECONDS: read(['actor-host', 'standalone'], seconds.default(180)),
  /** Tried first, in this order; absent: the router's own order. */
  LLM_PROVIDER_ORDER: read(['agent-gateway', 'actor-host', 'standalone'], providerSlugs.optional()),
  ROUTER_MAX_TOKENS: read(['agent-gateway', 'actor-host', 'standalone'], z.coerce.number().int().min(1).default(100_000)),

  /** Model calls at once of the evaluation of documents at the start; 1: one after the other. */
  EVAL_NODE_PARALLELISM: read(['actor-host', 'standalone'], z.coerce.number().int().min(1).max(1_000).default(50)),

  AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS: read(['agent-gateway', 'standalone'], seconds.default(120)),
  AUTONOMOUS_MAX_TIMEOUT_SECONDS: read(['agent-gateway', 'standalone'], seconds.default(600)),
  /** Tries of one delivery in all. */
  AUTONOMOUS_CALLBACK_MAX_RETRIES: read(['actor-host', 'effect-worker', 'standalone'], z.coerce.number().int().min(1).max(100).default(5)),
  EVENT_WEBHOOK_URL: read(['actor-host', 'standalone'], eventWebhookUrl.optional()),
  EVENT_WEBHOOK_KINDS: read(['actor-host', 'standalone'], eventWebhookKinds.optional()),
  REQUIRE_CALLBACK_ALLOWLIST: read(['agent-gateway', 'standalone'], z.stringbool().default(false)),
  /** Comma-separated host:port pairs; read by `parseAllowHosts`. */
  OUTBOUND_ALLOW_HOSTS: read(['agent-gateway', 'router-worker', 'effect-worker', 'standalone'], text),
  /** Comma-separated kinds of work; absent: all. */
  EFFECT_KINDS: read(['effect-worker'], text),
  /** Delay from a host's start to its first sweep of the store. */
  STORE_GC_DELAY_SECONDS: read(['actor-host', 'standalone'], seconds.default(120)),
  /** Retention of settled runs, deliveries of webhooks, replies to writes, tombstones of deleted sessions, closed effects and dead letters. */
  RUN_RETENTION_DAYS: read(['actor-host', 'standalone'], z.coerce.number().int().min(1).max(3_650).default(30)),
  /** Commands without a tag that the log stored before this time are applied; later ones are refused. */
  COMMAND_TAGS_REQUIRED_FROM: read(
    ['actor-host'],
    z.iso
      .datetime({ offset: true })
      .transform((instant) => new Date(instant))
      .optional(),
  ),
} as const;

/** Of all programs. */
export const settingNames: readonly string[] = Object.keys({ ...settingTable, ...tracingSettings });

type Table = typeof settingTable;
type Tracing = typeof tracingSettings;

/** The settings of a program as a shape for `readSettings`; services and `npm start` also have those of tracing. */
export type SettingsOf<Name extends Reader> = {
  [Setting in keyof Table as Name extends keyof Table[Setting] ? Setting : never]: Name extends keyof Table[Setting] ? Table[Setting][Name] : never;
} & (Name extends 'operator' ? unknown : Tracing);

export function settingsOf<Name extends Reader>(name: Name): SettingsOf<Name> {
  const rows = Object.entries(settingTable).flatMap(([setting, readers]) =>
    Object.entries(readers).flatMap(([reader, schema]) => (reader === name ? [[setting, schema]] : [])),
  );
  return { ...(name === 'operator' ? {} : tracingSettings), ...Object.fromEntries(rows) };
}
