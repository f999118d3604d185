import { z } from 'zod';
import { check, configInvalid, sentenceOf } from './problems.ts';
import type { Environment } from './secret-ref.ts';

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

/**
 * The environment variables of all service processes, each with one meaning and one default. Times are in seconds only where the name says
 * so. `npm start` has its own table with the same meanings (services/standalone/config.ts).
 */
export const settings = {
  NATS_URL: natsServers,
  /** Of the service's user. Absent: no authentication, as on a developer's machine. */
  NATS_PASSWORD: z.string().optional(),
  DATABASE_URL: z.url({ protocol: /^postgres(?:ql)?$/ }),
  REDIS_URL: z.url({ protocol: /^rediss?$/ }),

  HOST: z.string().default('0.0.0.0'),
  /** For probes and scrapers, apart from the public port; 0: any free port. */
  MANAGEMENT_PORT: port.default(9_090),
  MANAGEMENT_HOST: z.string().default('0.0.0.0'),
  /** Absent: `runtime.log_level` of the manifest if the process reads one, else info. */
  LOG_LEVEL: z.string().optional(),
  /** `text` or `json`; absent: text on a terminal, else JSON. */
  LOG_FORMAT: z.string().optional(),
  SHUTDOWN_DRAIN_TIMEOUT_SECONDS: seconds.default(120),
  /** File written with the process's addresses once it is ready, for programs that start it. */
  SWITCHYARD_READY_FILE: z.string().optional(),

  /** Signs ids; the same in every process that mints or verifies them. */
  HOUSE_SECRET: z.string().min(32, 'must have at least 32 characters'),
  ROUTER_CONFIG: z.string(),
  MANIFEST: z.string(),
  DOCUMENTS: z.string().optional(),
  PUBLIC_BASE_URL: z.url({ protocol: /^https?$/ }).optional(),

  /** Speed of the scripted model's streams: some three times reading speed, so that words visibly appear. 0: unlimited. */
  SCRIPTED_WORDS_PER_SECOND: z.coerce.number().int().min(0).max(100_000).default(60),

  STREAMING: z.stringbool().default(false),
  COALESCE_MS: z.coerce.number().int().min(0).max(60_000).default(150),
  TURN_TIMEOUT_SECONDS: seconds.default(180),
  ROUTER_MAX_TOKENS: z.coerce.number().int().min(1).default(100_000),

  AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS: seconds.default(120),
  AUTONOMOUS_MAX_TIMEOUT_SECONDS: seconds.default(600),
  /** Tries of one delivery in all. */
  AUTONOMOUS_CALLBACK_MAX_RETRIES: z.coerce.number().int().min(1).max(100).default(5),
  /** Delay from a host's start to its one sweep of the store. */
  STORE_GC_DELAY_SECONDS: seconds.default(120),
  /** Retention of settled runs, tombstones of deleted sessions, closed effects and dead letters. */
  RUN_RETENTION_DAYS: z.coerce.number().int().min(1).max(3_650).default(30),
  /** Commands without a tag that the log stored before this time are applied; later ones are refused. */
  COMMAND_TAGS_REQUIRED_FROM: z.iso
    .datetime({ offset: true })
    .transform((text) => new Date(text))
    .optional(),
  REQUIRE_CALLBACK_ALLOWLIST: z.stringbool().default(false),
  /** Comma-separated host:port pairs; read by `parseAllowHosts`. */
  OUTBOUND_ALLOW_HOSTS: z.string().optional(),
} as const;

export function publicPort(fallback: number) {
  return port.default(fallback);
}

/** Parses settings; an empty value counts as unset. @throws `config.invalid` listing every invalid variable, without its value */
export function readSettings<Shape extends z.ZodRawShape>(shape: Shape, environment: Environment): z.infer<z.ZodObject<Shape>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const { value, problems } = check(z.object(shape), given);
  if (value === null) throw configInvalid('the environment', problems.map(sentenceOf));
  return value;
}
