import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { useEmbeddedClusters } from './test-support/embedded-clusters.ts';
import { eventWebhookCases } from './test-support/event-webhook-cases.ts';

const open = useEmbeddedClusters({
  openDatabase: () => openTestDatabase(),
  openBus: (database) => openMemoryBus({ database, clock: systemClock, log: silentLog }),
});

eventWebhookCases(open);
