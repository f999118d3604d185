import { openMemoryBus } from '#bus/memory/memory-bus.ts';
import { systemClock } from '#shared/clock.ts';
import { openTestDatabase } from '#shared/storage/pglite/test-support/open-test-database.ts';
import { silentLog } from '#shared/telemetry/log.ts';
import { callbackCases } from './test-support/callback-cases.ts';
import { commandCases } from './test-support/command-cases.ts';
import { dispatchCases } from './test-support/dispatch-cases.ts';
import { useEmbeddedClusters } from './test-support/embedded-clusters.ts';
import { engineCases } from './test-support/engine-cases.ts';
import { hostCases } from './test-support/host-cases.ts';
import { logChangeCases } from './test-support/log-change-cases.ts';
import { patchCases } from './test-support/patch-cases.ts';
import { runCancelCases } from './test-support/run-cancel-cases.ts';
import { runCases } from './test-support/run-cases.ts';
import { runSessionCases } from './test-support/run-session-cases.ts';
import { storedSessionCases } from './test-support/stored-session-cases.ts';
import { takeOverCases } from './test-support/take-over-cases.ts';
import { toolEventCases } from './test-support/tool-event-cases.ts';
import { trustCases } from './test-support/trust-cases.ts';
import { unusedRowsCases } from './test-support/unused-rows-cases.ts';

const open = useEmbeddedClusters({
  openDatabase: () => openTestDatabase(),
  openBus: (database) => openMemoryBus({ database, clock: systemClock, log: silentLog }),
});

commandCases(open);
hostCases(open);
dispatchCases(open);
storedSessionCases(open);
patchCases(open);
logChangeCases(open);
engineCases(open);
runCases(open);
runCancelCases(open);
runSessionCases(open);
callbackCases(open);
takeOverCases(open);
toolEventCases(open);
trustCases(open);
unusedRowsCases(open);
