import { z } from 'zod';
import { check, configInvalid, sentenceOf } from './problems.ts';
import type { Environment } from './secret-ref.ts';

const port = z.coerce.number().int().min(0).max(65_535);
const seconds = z.coerce.number().int().min(1).max(86_400);

/** More than a deployment has; a list that is longer is a mistake in a template. */
const MAX_BROKERS = 32;

/** `nats://host:port`, or several of one cluster between commas. */
const natsServers = z.string().superRefine((text, context) => {
  const servers = text.split(',');
  if (servers.length > MAX_BROKERS) context.addIssue({ code: 'custom', message: `must name at most ${MAX_BROKERS} servers` });
  for (const server of servers) {
    const url = URL.canParse(server.trim()) ? new URL(server.trim()) : null;
    if (url === null || !/^(?:nats|tls):$/.test(url.protocol) || url.hostname === '') {
      context.addIssue({ code: 'custom', message: 'must be nats://host:port, or several of one cluster between commas' });
    } else if (url.username !== '' || url.password !== '') {
      // Every service has a user of its own at the broker, so one URL can't hold it for all.
      context.addIssue({ code: 'custom', message: 'must not hold a user or a password: the user is the name of the service, its password is NATS_PASSWORD' });
    }
  }
});

/**
 * The settings of the services that run as processes of their own. One name means one thing and has one default, whichever of them reads
 * it; each reads those that it uses. Times are in seconds only where the name says so. `npm start` has a table of its own
 * (services/standalone/config.ts), with the same meanings.
 */
export const settings = {
  NATS_URL: natsServers,
  /** Of the user that has the service's name. Without one there is no authentication, as on a developer's machine. */
  NATS_PASSWORD: z.string().optional(),
  DATABASE_URL: z.url({ protocol: /^postgres(?:ql)?$/ }),
  REDIS_URL: z.url({ protocol: /^rediss?$/ }),

  HOST: z.string().default('0.0.0.0'),
  /** For probes and scrapers, never on the public port; 0 takes any free one. */
  MANAGEMENT_PORT: port.default(9_090),
  MANAGEMENT_HOST: z.string().default('0.0.0.0'),
  /** Without it a process that reads a manifest takes `runtime.log_level`, any other logs at info. */
  LOG_LEVEL: z.string().optional(),
  /** `text` or `json`; without one, text on a terminal. */
  LOG_FORMAT: z.string().optional(),
  SHUTDOWN_DRAIN_TIMEOUT_SECONDS: seconds.default(120),
  /** For programs that start this one: a file that is written, with its addresses, once it is ready. */
  SWITCHYARD_READY_FILE: z.string().optional(),

  /** Signs ids. The same in every process that mints or checks them. */
  HOUSE_SECRET: z.string().min(32, 'must have at least 32 characters'),
  ROUTER_CONFIG: z.string(),
  MANIFEST: z.string(),
  DOCUMENTS: z.string().optional(),
  PUBLIC_BASE_URL: z.url({ protocol: /^https?$/ }).optional(),

  /** Of streamed answers of the scripted model: some three times as fast as people read, so words are seen to appear. 0 is unpaced. */
  SCRIPTED_WORDS_PER_SECOND: z.coerce.number().int().min(0).max(100_000).default(60),

  STREAMING: z.stringbool().default(false),
  COALESCE_MS: z.coerce.number().int().min(0).max(60_000).default(150),
  TURN_TIMEOUT_SECONDS: seconds.default(180),
  ROUTER_MAX_TOKENS: z.coerce.number().int().min(1).default(100_000),

  AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS: seconds.default(120),
  AUTONOMOUS_MAX_TIMEOUT_SECONDS: seconds.default(600),
  /** Attempts of one delivery in all. */
  AUTONOMOUS_CALLBACK_MAX_RETRIES: z.coerce.number().int().min(1).max(100).default(5),
  /** From the start of a host until it looks, once, for what has been left behind in the store. */
  STORE_GC_DELAY_SECONDS: seconds.default(120),
  /** How long settled runs, the traces of deleted sessions, closed effects and dead letters are kept. */
  RUN_RETENTION_DAYS: z.coerce.number().int().min(1).max(3_650).default(30),
  /** Commands without a tag that the log took before are applied; later ones are refused. */
  COMMAND_TAGS_REQUIRED_FROM: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text))
    .optional(),
  REQUIRE_CALLBACK_ALLOWLIST: z.stringbool().default(false),
  /** Exact host:port pairs between commas; `parseAllowHosts` reads it. */
  OUTBOUND_ALLOW_HOSTS: z.string().optional(),
} as const;

/** The setting of a public port, each service having its own default. */
export function publicPort(fallback: number) {
  return port.default(fallback);
}

/** Reads settings from the environment. An empty value counts as not given. @throws `config.invalid` listing every bad variable, none with its value */
export function readSettings<Shape extends z.ZodRawShape>(shape: Shape, environment: Environment): z.infer<z.ZodObject<Shape>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const { value, problems } = check(z.object(shape), given);
  if (value === null) throw configInvalid('the environment', problems.map(sentenceOf));
  return value;
}
