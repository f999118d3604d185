import { it } from 'vitest';
import { runRouterSchedules } from './run-router-schedules.ts';

/** Minutes on a busy machine; a larger number of schedules is set by hand. */
const WITHIN_MS = 3_600_000;

it(
  'whatever happens to gateways, workers, ledgers and stores, each call is billed once, within its limit: the other half of the deep tier',
  () => runRouterSchedules(1),
  WITHIN_MS,
);
