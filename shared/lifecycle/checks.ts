import type { Cache } from '../storage/cache.ts';
import type { Queryable } from '../storage/database.ts';
import type { Check } from './readiness.ts';

/**
 * Readiness checks of the bus, the database and the cache.
 * @param bus the bus of this process; its driver knows whether the broker is reachable
 */
export function busCheck(bus: { isReady(): boolean }): Check {
  return { name: 'bus', isNeeded: true, ask: () => bus.isReady() };
}

export function databaseCheck(database: Queryable): Check {
  return {
    name: 'database',
    isNeeded: true,
    async ask() {
      await database.query('select 1');
      return true;
    },
  };
}

/** Optional: nothing fails without the cache, so the process stays ready, but the report shows it. */
export function cacheCheck(cache: Cache): Check {
  return {
    name: 'cache',
    isNeeded: false,
    async ask() {
      await cache.get('readiness');
      return true;
    },
  };
}
