import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { vi } from 'vitest';
import type { RouterCall } from '../../bus/messages/router.ts';
import type { Execution } from '../../services/router-worker/call/execute-call.ts';
import type { Environment } from './environment.ts';
import type { Patch } from './planted-faults.ts';
import type { Process } from './scheduler.ts';

/** Few partitions, so that hosts compete for each, and a take-over is cheap. */
const PARTITIONS = 8;
const TIME_LETTERS = 10;

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
  vi.doMock('../../shared/ids.ts', () => ({ ulid: seededUlid, ulidTimeMs: () => 0, traceId: () => randomText('0123456789abcdef', 32) }));
  vi.doMock('../../bus/partition.ts', () => ({ PARTITION_COUNT: PARTITIONS, partitionOf: (sessionId: string) => fnv(sessionId) % PARTITIONS }));
  vi.doMock('node:timers/promises', () => ({ setTimeout: simulatedPause }));
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
  if (patch === null) return (await import('./run-simulation.ts')).runSimulation;
  const copy = patchedCopy(patch);
  vi.doMock(join(ROOT, patch.file), () => import(copy.path));
  try {
    return (await import('./run-simulation.ts')).runSimulation;
  } finally {
    vi.doUnmock(join(ROOT, patch.file));
    copy.remove();
  }
}

const ROOT = resolve(import.meta.dirname, '../..');

/** The patched source in a temporary folder; its imports are absolute paths of the product. @throws TypeError when the patch does not fit */
function patchedCopy({ file, find, replace }: Patch): { path: string; remove(): void } {
  const source = readFileSync(join(ROOT, file), 'utf8');
  if (source.split(find).length !== 2) throw new TypeError(`${file} holds ${source.split(find).length - 1} times: ${find}`);
  const text = source
    .replace(find, replace)
    .replaceAll(/from '#([^']+)'/g, (_, path: string) => `from '${join(ROOT, path)}'`)
    .replaceAll(/from '(\.[^']+)'/g, (_, path: string) => `from '${resolve(ROOT, dirname(file), path)}'`);
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-fault-'));
  const path = join(folder, 'patched.ts');
  writeFileSync(path, text);
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

function randomText(letters: string, length: number): string {
  let text = '';
  for (let index = 0; index < length; index += 1) text += letters[Math.floor(Math.random() * letters.length)];
  return text;
}

/** Sorts by time, as ULIDs do. */
function seededUlid(): string {
  return Date.now().toString(32).toUpperCase().padStart(TIME_LETTERS, '0') + randomText('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 16);
}

function fnv(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

function simulatedPause(ms: number, value: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(value), ms);
    const end = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    if (signal?.aborted === true) end();
    else signal?.addEventListener('abort', end, { once: true });
  });
}
