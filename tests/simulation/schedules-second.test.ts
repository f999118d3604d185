import { it } from 'vitest';
import { runSchedules } from './run-schedules.ts';

/** Minutes on a busy machine; a larger number of schedules is set by hand. */
const WITHIN_MS = 3_600_000;

it(
  'whatever happens to hosts, workers and stores, nothing is lost, done twice, or left hanging: the other half of the deep tier',
  () => runSchedules(1),
  WITHIN_MS,
);
