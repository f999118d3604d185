import { expect, it } from 'vitest';
import { parseConfig as parseActorHost } from '#services/actor-host/config.ts';
import { parseConfig as parseAgentGateway } from '#services/agent-gateway/config.ts';
import { parseConfig as parseEffectWorker } from '#services/effect-worker/config.ts';
import { parseConfig as parseRouterGateway } from '#services/router-gateway/config.ts';
import { parseConfig as parseRouterWorker } from '#services/router-worker/config.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { parseConfig } from './config.ts';

/** Settings that belong to a separate process. A gateway keeps traces when it is asked to. */
const OWN = [
  'logLevel',
  'logFormat',
  'management',
  'readyFile',
  'nats',
  'databaseUrl',
  'redisUrl',
  'houseSecret',
  'host',
  'port',
  'kinds',
  'platformKeys',
  'keepsTraces',
];

const stores = { NATS_URL: 'nats://127.0.0.1:4222', DATABASE_URL: 'postgres://127.0.0.1/agents', REDIS_URL: 'redis://127.0.0.1' };
const required = { ...stores, HOUSE_SECRET: 'x'.repeat(32), MANIFEST: 'examples/acme-support/manifest.yaml', ROUTER_CONFIG: 'router.yaml' };

const everythingSet = {
  STREAMING: 'true',
  COALESCE_MS: '7',
  TURN_TIMEOUT_SECONDS: '8',
  ROUTER_MAX_TOKENS: '9',
  LLM_PROVIDER_ORDER: 'openai, deepinfra/turbo',
  AUTONOMOUS_DEFAULT_TIMEOUT_SECONDS: '10',
  AUTONOMOUS_MAX_TIMEOUT_SECONDS: '11',
  AUTONOMOUS_CALLBACK_MAX_RETRIES: '12',
  REQUIRE_CALLBACK_ALLOWLIST: 'true',
  EVENT_WEBHOOK_URL: 'https://receiver.example/events',
  EVENT_WEBHOOK_KINDS: 'assistant_message,tool',
  OUTBOUND_ALLOW_HOSTS: 'receiver.internal:8080',
  PUBLIC_BASE_URL: 'https://switchyard.example',
  AGENT_PUBLIC_URL: 'https://agent.example',
  SHUTDOWN_DRAIN_TIMEOUT_SECONDS: '13',
  STORE_GC_DELAY_SECONDS: '14',
  RUN_RETENTION_DAYS: '15',
  DOCUMENTS: 'elsewhere',
  SECRETS_DIR: 'secrets',
  SMTP_URL: 'smtps://mailer:secret@mail.example',
  MAIL_FROM: 'Switchyard <keys@example.com>',
  OTEL_PROPAGATORS: 'tracecontext,baggage',
};

it.each([
  ['the defaults', {}],
  ['every setting', everythingSet],
])('a service alone reads %s as npm start does', (_, env: Environment) => {
  const environment = { ...required, ...env };
  const together: Record<string, unknown> = parseConfig(environment);
  const alone = [
    parseRouterGateway(environment),
    parseRouterWorker(environment),
    parseAgentGateway(environment),
    parseActorHost(environment),
    parseEffectWorker(environment, []),
  ];

  const fields = alone.flatMap((config) => Object.entries(config)).filter(([name]) => !OWN.includes(name));
  for (const [name, value] of fields) expect([name, value]).toEqual([name, together[name]]);
  expect(fields.length).toBeGreaterThan(20);
});
