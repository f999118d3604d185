import { it } from 'vitest';
import { runRouterSchedules } from './run-router-schedules.ts';

/** Minutes on a busy machine; a larger number of schedules is set by hand. */
const WITHIN_MS = 3_600_000;

it('whatever happens to gateways, workers, ledgers and stores, each call is billed once, within its limit', () => runRouterSchedules(0), WITHIN_MS);
