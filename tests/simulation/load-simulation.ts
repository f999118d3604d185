import { join } from 'node:path';
import { vi } from 'vitest';
import type { RouterCall } from '../../bus/messages/router.ts';
import type { Execution } from '../../services/router-worker/call/execution.ts';
import type { Environment } from './environment.ts';
import type { Patch } from './planted-faults.ts';
import { ROOT, replaceChance, withPatch } from './replace-modules.ts';
import type { Process } from './scheduler.ts';

/** Few partitions, so that hosts compete for each, and a take-over is cheap. */
const PARTITIONS = 8;
const MAX_CACHED = 256;

type RunSimulation = typeof import('./run-simulation.ts').runSimulation;

interface SimulatedExecution extends Execution {
  call: RouterCall;
}

/**
 * Loads the product's modules anew, with replacements for what is not deterministic: ids come from the seed, partitions are few, pauses are of
 * simulated time, and a model call goes to the simulated environment in place of a provider.
 */
export async function loadSimulation(patch: Patch | null = null): Promise<RunSimulation> {
  vi.resetModules();
  replaceChance();
  vi.doMock('../../bus/partition.ts', () => ({ PARTITION_COUNT: PARTITIONS, partitionOf: (sessionId: string) => fnv(sessionId) % PARTITIONS }));
  vi.doMock('lru-cache', smallCaches);
  // The production build: the tests' import conditions select the development build, which checks, warns and is slower.
  vi.doMock('xstate', () => import(join(ROOT, 'node_modules/xstate/dist/xstate.cjs.js')));
  vi.doMock('../../services/router-worker/call/execute-call.ts', async () => {
    const { failureOf } = await import('../../shared/errors/switchyard-error.ts');
    return {
      executeCall: (execution: SimulatedExecution, { environment, process }: { environment: Environment; process: Process }) =>
        environment.callModel(process, execution),
      refuseCall: (_: Execution, error: unknown) => ({ type: 'failed', failure: failureOf(error) }),
    };
  });
  vi.doMock('../../services/router-worker/call/check-texts.ts', () => ({
    checkTexts: (execution: SimulatedExecution, { environment, process }: { environment: Environment; process: Process }) =>
      environment.checkTexts(process, execution),
  }));
  return withPatch(patch, async () => (await import('./run-simulation.ts')).runSimulation);
}

/** A cache reserves the memory of all its entries when it is made, and each schedule starts several hosts. None has as many entries as this. */
async function smallCaches() {
  const { LRUCache } = await vi.importActual<typeof import('lru-cache')>('lru-cache');
  return {
    LRUCache: class<Key extends object, Value extends object> extends LRUCache<Key, Value> {
      constructor(options: ConstructorParameters<typeof LRUCache<Key, Value>>[0]) {
        super({ ...options, ...(options.max !== undefined && { max: Math.min(options.max, MAX_CACHED) }) } as typeof options);
      }
    },
  };
}

function fnv(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}
