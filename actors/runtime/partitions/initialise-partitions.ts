import { PARTITION_COUNT } from '#bus/partition.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { PartitionStore } from '../../store/port/partition-store.ts';

/** Creates the partitions at a store's first start. @throws `storage.schema_refused` for another number of partitions */
export async function initialisePartitions(store: Pick<PartitionStore, 'initialise'>): Promise<void> {
  const stored = await store.initialise(PARTITION_COUNT); // no fail point: initialises
  if (stored === PARTITION_COUNT) return;
  throw new SwitchyardError('storage.schema_refused', `the store has ${stored} partitions, this program has ${PARTITION_COUNT}`);
}
