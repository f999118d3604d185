import { vi } from 'vitest';
import type { Living } from '../../../shared/config/living.ts';
import type { CallerKey } from '../../../shared/keys/caller-key.ts';
import type { Patch } from '../planted-faults.ts';
import { replaceChance, withPatch } from '../replace-modules.ts';
import type { SimulatedProviders } from './simulated-provider.ts';

type RunRouterSimulation = typeof import('./run-router-simulation.ts').runRouterSimulation;

/** Loads the router's modules anew, with replacements for what is not deterministic, and for the providers. */
export async function loadRouterSimulation(patch: Patch | null = null): Promise<RunRouterSimulation> {
  vi.resetModules();
  replaceChance({ areUlids: true });
  vi.doMock('../../../services/router-worker/providers/registry.ts', () => ({
    openProviders: ({ environment }: { environment: { providers: ReturnType<SimulatedProviders['of']> } }) => environment.providers,
  }));
  // One timer would serve all processes where a module has its deadlines.
  vi.doMock('../../../shared/deadlines.ts', () => ({ Deadlines: SeparateDeadlines }));
  // Mails are no part of a call.
  vi.doMock('../../../services/router-worker/mails/mails.ts', () => ({ startMails: () => ({ stop: async () => {} }) }));
  // Its caches are made for ten thousand rows; here all keys are those of a file.
  vi.doMock('../../../shared/keys/open-key-directory.ts', () => ({
    openKeyDirectory: ({ fileKeys }: { fileKeys: Living<ReadonlyMap<string, CallerKey>> }) => ({
      find: (hash: string) => fileKeys.current().get(hash) ?? null,
      forget: () => {},
    }),
  }));
  // Files are read in processes, and their hashes made in a thread: neither is of simulated time.
  vi.doMock('../../../services/router-worker/pipeline/files/pdf-texts.ts', async (importOriginal) => ({
    ...(await importOriginal<object>()),
    PdfProcesses: (await import('./simulated-texts.ts')).SimulatedTexts,
  }));
  vi.doMock('../../../services/router-worker/pipeline/files/file-bytes.ts', async (importOriginal) => ({
    ...(await importOriginal<object>()),
    bytesOf: async () => ({ bytes: Buffer.alloc(0), hash: '0'.repeat(64) }),
  }));
  return withPatch(patch, async () => (await import('./run-router-simulation.ts')).runRouterSimulation);
}

interface SeparateDeadline {
  timer: NodeJS.Timeout | undefined;
  onOver(): void;
}

/** As `Deadlines`, with a timer for each, which belongs to the process that begins it. */
class SeparateDeadlines {
  begin(afterMs: number, onOver: () => void): SeparateDeadline {
    const deadline = { timer: undefined, onOver };
    this.restart(deadline, afterMs);
    return deadline;
  }

  restart(deadline: SeparateDeadline, afterMs: number): void {
    this.stop(deadline);
    deadline.timer = setTimeout(deadline.onOver, Math.ceil(afterMs));
  }

  stop({ timer }: SeparateDeadline): void {
    clearTimeout(timer);
  }
}
