import { bundleStore } from '#shared/config/bundle-store.ts';
import { evaluationStore } from '#shared/config/evaluation-store.ts';
import type { Queryable } from '#shared/storage/database.ts';
import type { RuntimeStore } from '../runtime-store.ts';
import { commitRows } from './commit-rows.ts';
import { customerRows } from './customer-rows.ts';
import { effectRows } from './effect-rows.ts';
import { hostRows } from './host-rows.ts';
import { partitionRows } from './partition-rows.ts';
import { runRows } from './run-rows.ts';
import { sessionRows } from './session-rows.ts';
import { sweep } from './sweep.ts';
import { timerRows } from './timer-rows.ts';
import { turnRows } from './turn-rows.ts';

/** The runtime's store in PostgreSQL. Each method is one statement, but for `initialise` and `sweep`, which are repeatable. */
export function sqlRuntimeStore(database: Queryable): RuntimeStore {
  return {
    commits: commitRows(database),
    partitions: partitionRows(database),
    hosts: hostRows(database),
    sessions: sessionRows(database),
    timers: timerRows(database),
    effects: effectRows(database),
    runs: runRows(database),
    turns: turnRows(database),
    customers: customerRows(database),
    bundles: bundleStore(database),
    evaluations: evaluationStore(database),
    sweep: () => sweep(database),
  };
}
