import type { Clock } from '../clock.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Log } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { FileWatch, signatureOf } from './file-watch.ts';
import { type Living, LivingValue } from './living.ts';
import { loadRouterConfig, type RouterConfigUse } from './load-router-config.ts';
import type { LoadedRouterConfig } from './loaded-router-config.ts';
import { readInThread } from './read-in-thread.ts';
import type { Environment } from './secret-ref.ts';

export interface RouterConfigFile {
  path: string;
  environment: Environment;
  use: RouterConfigUse;
}

/** What a process has read at its start. */
interface FirstRead {
  loaded: LoadedRouterConfig;
  /** Of the file, taken before it was read. */
  signature: string;
}

interface ReloadDeps {
  clock: Clock;
  log: Log;
  metrics: Metrics;
  pollMs?: number;
}

export interface OpenedRouterConfig {
  living: Living<LoadedRouterConfig>;
  /** Reads the file now, changed or not. Never rejects. */
  reload(): Promise<void>;
  stop(): Promise<void>;
}

/** Reads the router's configuration, and keeps it current. @throws `config.invalid` listing every error */
export async function openRouterConfig(file: RouterConfigFile, deps: ReloadDeps): Promise<OpenedRouterConfig> {
  const signature = await signatureOf(file.path);
  const loaded = await loadRouterConfig(file.path, file.environment, file.use);
  return keepRouterConfig(file, { loaded, signature }, deps);
}

/**
 * Reads the router's configuration again when its file changes. One that is not valid, or that a derived value refuses, is refused whole, with all its errors in
 * the log, and the one before stays in force.
 */
export function keepRouterConfig(file: RouterConfigFile, { loaded, signature }: FirstRead, { pollMs, ...deps }: ReloadDeps): OpenedRouterConfig {
  const reloads = new Reloads(file, loaded, deps);
  const watch = new FileWatch(file.path, () => reloads.run(), { known: signature, ...(pollMs !== undefined && { pollMs }) });
  return {
    living: reloads.living,
    async reload() {
      watch.setKnown(await signatureOf(file.path));
      await reloads.run();
    },
    async stop() {
      reloads.stop();
      await watch.stop();
    },
  };
}

class Reloads {
  readonly living: LivingValue<LoadedRouterConfig>;
  readonly #file: RouterConfigFile;
  readonly #deps: Omit<ReloadDeps, 'pollMs'>;
  readonly #unwatch: () => void;
  readonly #stopping = new AbortController();
  #inForceSinceMs: number;
  /** One after the other: each reads what is there when it begins. */
  #last: Promise<void> = Promise.resolve();

  constructor(file: RouterConfigFile, first: LoadedRouterConfig, deps: Omit<ReloadDeps, 'pollMs'>) {
    this.living = new LivingValue(first);
    this.#file = file;
    this.#deps = deps;
    this.#inForceSinceMs = deps.clock.nowMs();
    const sample = () => ({ labels: { hash: this.living.current().hash }, value: this.#inForceSinceMs / 1_000 });
    this.#unwatch = deps.metrics.watch('configInForceSince', () => [sample()]);
  }

  run(): Promise<void> {
    this.#last = this.#last.then(() => this.#reload());
    return this.#last;
  }

  stop(): void {
    this.#unwatch();
    this.#stopping.abort();
  }

  async #reload(): Promise<void> {
    const { clock, log, metrics } = this.#deps;
    const { path, environment, use } = this.#file;
    const { signal } = this.#stopping;
    const before = this.living.current();
    try {
      const next = await loadRouterConfig(path, environment, use, (at) => readInThread(at, signal));
      if (signal.aborted) return;
      if (next.hash === before.hash) {
        metrics.add('configReloads', { outcome: 'unchanged' });
        log.info({ path, hash: next.hash }, "the router's configuration was read again and has not changed");
        return;
      }
      this.living.replace(next);
      this.#inForceSinceMs = clock.nowMs();
      metrics.add('configReloads', { outcome: 'applied' });
      const { providers, models, keys } = next.config;
      const counts = { providers: providers.length, models: models.length, keys: keys.length };
      log.info({ path, hash: next.hash, hash_before: before.hash, ...counts }, "the router's configuration was replaced");
    } catch (error) {
      if (signal.aborted) return;
      metrics.add('configReloads', { outcome: 'refused' });
      const facts = { path, hash_in_force: before.hash };
      const why = error instanceof SwitchyardError ? { problems: error.message.split('\n') } : { err: error };
      log.error({ ...facts, ...why }, 'a new configuration of the router is refused: the one before stays in force');
    }
  }
}
