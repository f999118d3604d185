import type { Cache } from '../storage/cache.ts';
import type { Queryable } from '../storage/database.ts';
import type { Check } from './readiness.ts';

/** @param bus the bus of this process; its driver knows whether the broker is there */
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

/** A cache that is away makes nothing fail, so it makes nobody unready either; people want to know it all the same. */
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
