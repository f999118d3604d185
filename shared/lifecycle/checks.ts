import type { Cache } from '../storage/cache.ts';
import type { Queryable } from '../storage/database.ts';
import type { Check } from './readiness.ts';

/** Readiness checks of the bus, the database and the cache. */
export function busCheck(bus: { isReady(): boolean }): Check {
  return { name: 'bus', isNeeded: true, ask: () => bus.isReady() };
}

export function databaseCheck(database: Queryable, { isNeeded = true } = {}): Check {
  return {
    name: 'database',
    isNeeded,
    async ask() {
      await database.query('select 1');
      return true;
    },
  };
}

/** Not needed: nothing fails without the cache. */
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
