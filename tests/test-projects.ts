import { matchesGlob } from 'node:path';
import type { Tier } from './helpers/tier.ts';

/** Use real servers or run the built program; all others need neither and start at once. */
export const needServers = [
  'tests/e2e/**/*.test.ts',
  'tests/chaos/**/*.test.ts',
  'bus/nats/**/*.test.ts',
  'shared/storage/{postgres,redis}/**/*.test.ts',
  'services/**/*.servers.test.ts',
];

/** Promises in seconds, under load: nothing else may run beside them, nor they beside each other. */
export const serial = ['tests/chaos/{chaos,edge-drain,edge-drain-standalone,edge-overload,edge-stores}.test.ts', 'tests/e2e/leaving.test.ts'];

/**
 * Change the state of their whole process: timers, a module, a global, the heap, the event loop. Other units share processes. Timers that are
 * replaced outlast their file: undici and `Deadlines` keep one timer per process, and one that was made meanwhile never fires.
 */
export const needOwnProcess = [
  'actors/runtime/{partitions/timers,publish/outbox}.test.ts',
  'bus/{dispatched-item,renew-lease}.test.ts',
  'services/actor-host/log-pending-callbacks.test.ts',
  'services/agent-gateway/command-replies.test.ts',
  'services/router-gateway/relay/{frame-feed-replays,silence-watch}.test.ts',
  'services/router-worker/{call-interest,running-calls}.test.ts',
  'services/router-worker/call/answer-stream.test.ts',
  'services/router-worker/providers/scripted/adapter.test.ts',
  'shared/deadlines.test.ts',
  'shared/lifecycle/{boot,readiness,releasers}.test.ts',
  'tests/simulation/**/*.test.ts',
  'services/router-worker/providers/http-stream/quoted-secrets.test.ts',
  'services/router-gateway/routes/traces-intake.test.ts',
  'shared/lifecycle/{heap,loop-watchdog}.test.ts',
  'shared/telemetry/open-tracing.test.ts',
  'tests/otel-variables.test.ts',
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

/** Run in the deep tier only. */
export const deepOnly: string[] = [];

/** The first tier in which a file runs. Cases that stand outside test files are run by embedded drivers, too, but for those of whole deployments. */
export function firstTierOf(file: string): Tier {
  const isIn = (globs: readonly string[]) => globs.some((glob) => matchesGlob(file, glob));
  if (isIn(deepOnly)) return 'deep';
  if (isIn(needServers) || isIn(slow)) return 'normal';
  return !file.endsWith('.test.ts') && file.startsWith('tests/') ? 'normal' : 'fast';
}
