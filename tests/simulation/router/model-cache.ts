import { SwitchyardError } from '../../../shared/errors/switchyard-error.ts';
import type { Cache } from '../../../shared/storage/cache.ts';
import { memoryCache } from '../../../shared/storage/memory/memory-cache.ts';
import type { Process, Scheduler } from '../scheduler.ts';

/** The cache of all gateways: each request is a step, and may be executed late, without an answer, or never. */
export class ModelCache {
  readonly #scheduler: Scheduler;
  readonly #cache: Cache;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
    this.#cache = memoryCache({ clock: { nowMs: () => scheduler.nowMs } });
  }

  of(process: Process): Cache {
    return new Proxy(this.#cache, {
      get: (cache, name: keyof Cache) => {
        const method = cache[name].bind(cache) as (...args: readonly unknown[]) => Promise<unknown>;
        return (...args: readonly unknown[]) => this.#scheduler.park(process, `cache ${name}`, cacheLost, () => method(...args));
      },
    });
  }
}

function cacheLost(): Error {
  return new SwitchyardError('service.unreachable', 'the cache is away');
}
