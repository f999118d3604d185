import { matchesGlob } from 'node:path';
import type { Tier } from './helpers/tier.ts';

/** Use real servers or run the built program; all others need neither and start at once. */
export const needServers = [
  'tests/e2e/**/*.test.ts',
  'tests/chaos/**/*.test.ts',
  'tests/security/planted-secrets.test.ts',
  'bus/nats/{broker-loss,nats-bus,opening,permissions,replicas-conformance,users}.test.ts',
  'bus/nats/connection/{dial,link}.test.ts',
  'bus/nats/tokens/{token-connection,token-stream}.test.ts',
  'bus/nats/usage/usage-log.test.ts',
  'bus/nats/local/local-delivery.test.ts',
  'bus/nats/work/{pause-detector,repeated-deliveries}.test.ts',
  'shared/storage/postgres/{migrate,open-postgres}.test.ts',
  'shared/storage/redis/open-redis.test.ts',
  '{actors,services,shared}/**/*.servers.test.ts',
];

/** Assert times, with bounds of three times the promise and more: behind the files that start servers, at once. They wait most of their time; units use it. */
export const timed = ['tests/chaos/{chaos,edge-drain,edge-stores}.test.ts', 'tests/e2e/leaving.test.ts'];

/** Takes all of the CPU, and compares rates: behind all others, alone. */
export const alone = ['tests/chaos/edge-overload.test.ts'];

/**
 * Change the state of their whole process: timers, a module, a global, the heap, the event loop. Other units share processes. Timers that are
 * replaced outlast their file: undici and `Deadlines` keep one timer per process, and one that was made meanwhile never fires.
 */
export const needOwnProcess = [
  'actors/effects/model-calls.test.ts',
  'actors/kinds/turn/hidden-classes.test.ts',
  'actors/runtime/{apply/held-timers,partitions/timers,publish/{dispatched-effects,outbox}}.test.ts',
  'bus/{dispatched-item,renew-lease}.test.ts',
  'bus/nats/{commands/{command-feed,command-log},connection/{consumers,leaderless-streams,overlapping,retries,stored-publish},tokens/replay-batches,usage/{undelivered-records,usage-consumer},work/{dispatched-leases,waiting-lease,work-consumer}}.test.ts',
  'services/actor-host/log-pending-callbacks.test.ts',
  'services/agent-gateway/{command-replies,feed/page-body}.test.ts',
  'services/router-gateway/relay/{frame-feed-replays,silence-watch}.test.ts',
  'services/router-worker/{call-interest,call-watch}.test.ts',
  'services/effect-worker/tools/connection.test.ts',
  'services/work/{consume-kind,running-items}.test.ts',
  'services/router-worker/call/answer-stream.test.ts',
  'services/router-worker/providers/scripted/adapter.test.ts',
  'shared/deadlines.test.ts',
  'shared/http-server/json-bodies.test.ts',
  'shared/prompts/json-writer.test.ts',
  'shared/rates/{slot-leases,token-corrections}.test.ts',
  'shared/storage/memory/memory-cache.test.ts',
  'shared/storage/redis/silence-watch.test.ts',
  'shared/lifecycle/{boot,readiness,releasers}.test.ts',
  'tests/simulation/**/*.test.ts',
  'services/router-worker/providers/http-stream/quoted-secrets.test.ts',
  'services/router-gateway/routes/traces-intake.test.ts',
  'shared/lifecycle/{heap,heap-after-start,heap-growth,longest-lateness,loop-lateness,loop-watchdog}.test.ts',
  'shared/telemetry/{line-writer,log,open-tracing}.test.ts',
  'tests/otel-variables.test.ts',
  'tests/upstreams/bedrock.test.ts',
  'scripts/**/*.test.ts',
];

/** Need no server and take long: many databases, much memory. The fast tier leaves them to the normal one. */
export const slow = [
  'shared/storage/pglite/open-pglite.test.ts',
  'shared/lifecycle/heap.test.ts',
  'services/actor-host/crashes.property.test.ts',
  'scripts/servers/start-cluster.test.ts',
  'tests/simulation/model-database.test.ts',
];

/** Take longest, longest first. A run begins with them: one that begins last leaves the other cores without work. Files that share processes follow. */
export const longest = [
  // Of the second group, which begins with all of them at once.
  'tests/chaos/chaos.test.ts',
  'tests/e2e/leaving.test.ts',
  'tests/chaos/edge-stores.test.ts',
  'tests/chaos/edge-drain.test.ts',
  // Of the first.
  'bus/nats/nats-bus.test.ts',
  'tests/e2e/packed.test.ts',
  'tests/e2e/console.test.ts',
  'tests/e2e/chat-page.test.ts',
  'tests/simulation/schedules-first.test.ts',
  // Searches for faults that a change of the product has moved (docs/adr/0111).
  'tests/simulation/planted-faults.test.ts',
  'tests/e2e/service-processes.test.ts',
  'tests/e2e/roles-in-one-process.test.ts',
  'tests/e2e/actor-host-on-servers.test.ts',
  'tests/chaos/engine/engine.test.ts',
  'tests/e2e/two-commands.test.ts',
  'tests/e2e/without-containers.test.ts',
  'services/actor-host/service.servers.test.ts',
  'tests/e2e/streams.test.ts',
  'tests/e2e/platform.test.ts',
  'tests/chaos/webhook-fail-points.test.ts',
  'tests/e2e/streams-cluster.test.ts',
  'tests/e2e/data-folder-and-settings.test.ts',
  'tests/e2e/client.test.ts',
  'tests/e2e/chat-page-input.test.ts',
  'tests/chaos/edge-drain-standalone.test.ts',
  'tests/chaos/fail-points.test.ts',
  'tests/e2e/command-line.test.ts',
  'tests/e2e/membership.test.ts',
  'tests/e2e/start-and-stop.test.ts',
  'tests/e2e/shared-health.test.ts',
  'tests/chaos/postgres.test.ts',
  'tests/e2e/deployment-as-cluster.test.ts',
  'tests/e2e/cluster.test.ts',
  'tests/e2e/replay.test.ts',
  'tests/e2e/catalogue.test.ts',
  'tests/e2e/reload.test.ts',
  'tests/e2e/monitoring.test.ts',
  'tests/e2e/stores-away.test.ts',
  'shared/storage/postgres/migrate.test.ts',
  'scripts/servers/start-cluster.test.ts',
  'tests/security/planted-secrets.test.ts',
  'tests/chaos/billing.test.ts',
  'tests/e2e/tls.test.ts',
  'bus/nats/broker-loss.test.ts',
  'tests/e2e/three-brokers.test.ts',
  'tests/e2e/agent-boot.test.ts',
  'tests/chaos/hedges.test.ts',
  'tests/chaos/edge-disk.test.ts',
  'tests/e2e/mails.test.ts',
  'tests/e2e/deployment-in-one-process.test.ts',
  'tests/chaos/redis.test.ts',
  'tests/chaos/edge-drain-tools.test.ts',
  'tests/e2e/first-lines.test.ts',
  'tests/e2e/webhooks.test.ts',
  'tests/simulation/router/router-schedules-first.test.ts',
  'tests/e2e/agent-key.test.ts',
  // Of files that share processes.
  'services/actor-host/service.test.ts',
  'services/actor-host/crashes.property.test.ts',
  'shared/storage/pglite/open-pglite.test.ts',
  'bus/memory/memory-bus.test.ts',
  'tests/faults/provider-faults.test.ts',
  'services/agent-gateway/pipelined-requests.test.ts',
  'services/agent-gateway/relay/slow-clients.test.ts',
  'services/effect-worker/tools/call-tool.test.ts',
  'services/agent-gateway/routes/customers.test.ts',
  'tests/reload/reload-under-load.test.ts',
  'actors/kinds/turn/hostile-turns.property.test.ts',
  'services/router-worker/pipeline/files/pdf-texts.test.ts',
  'services/router-worker/service.test.ts',
  'services/effect-worker/tools/eras.test.ts',
  'actors/kinds/turn/turn-budget.test.ts',
  'shared/config/load-bundle.test.ts',
  'services/router-gateway/account/keys.test.ts',
  'services/effect-worker/tools/tool-lists.test.ts',
  'tests/upstreams/openai-profiles.test.ts',
  'tests/monitoring/alerts.test.ts',
];

/** Run in the deep tier only. */
export const deepOnly: string[] = [
  'bus/nats/replicas-conformance.test.ts',
  'tests/chaos/{brokers,brokers-cut-off,brokers-restarted,outage,upgrade}.test.ts',
  'tests/e2e/{alerts-by-cause,many-runs}.test.ts',
  'tests/e2e/sixty-turns/sixty-turns.test.ts',
  'tests/simulation/{schedules-second,router/router-schedules-second}.test.ts',
];

/** The first tier in which a file runs. Cases that stand outside test files are run by embedded drivers, too, but for those of whole deployments. */
export function firstTierOf(file: string): Tier {
  const isIn = (globs: readonly string[]) => globs.some((glob) => matchesGlob(file, glob));
  if (isIn(deepOnly)) return 'deep';
  if (isIn(needServers) || isIn(slow)) return 'normal';
  return !file.endsWith('.test.ts') && file.startsWith('tests/') ? 'normal' : 'fast';
}
