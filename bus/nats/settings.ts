/** The same in every process. Streams keep those of their creation, or of the operator's last update. */
export interface NatsSettings {
  /** Time to reach the broker on opening. */
  connectBudgetMs: number;
  /** Time for retries of one store, settle or look-up, with the same message id. */
  storeBudgetMs: number;
  /** Dedupe window; at least 100 ms. */
  dedupeMs: number;
  /** How long frames can be replayed. */
  tokenMaxAgeMs: number;
  /** Longer than anything that references a blob. */
  blobMaxAgeMs: number;
  /** Item deadlines are long past by then. */
  workMaxAgeMs: number;
  /** A usage record is delivered again this long after its delivery: much longer than a batch takes, and what a killed consumer delays it by. */
  usageAckWaitMs: number;
  /** Reserved by the broker on disk: declaring fails when less is free. Together they fit 10 GB. */
  commandMaxBytes: number;
  /** Some 400,000 records of calls, for the time that the ledger's database is away. */
  usageMaxBytes: number;
  workMaxBytes: number;
  blobMaxBytes: number;
  /** In memory: 4,000 calls of 64 KiB within two minutes; past it the oldest frames are dropped. */
  tokenMaxBytes: number;
  /** Servers of the cluster that store each stream: 1, or 3 or 5 of at least as many servers. */
  replicas: number;
}

const HOUR_MS = 3_600_000;
const MEBIBYTE = 1024 * 1024;

export const defaultSettings: NatsSettings = {
  connectBudgetMs: 8_000,
  storeBudgetMs: 8_000,
  dedupeMs: 120_000,
  tokenMaxAgeMs: 120_000,
  blobMaxAgeMs: 24 * HOUR_MS,
  workMaxAgeMs: 24 * HOUR_MS,
  usageAckWaitMs: 15_000,
  commandMaxBytes: 1024 * MEBIBYTE,
  usageMaxBytes: 512 * MEBIBYTE,
  workMaxBytes: 1024 * MEBIBYTE,
  blobMaxBytes: 3 * 1024 * MEBIBYTE,
  tokenMaxBytes: 256 * MEBIBYTE,
  replicas: 1,
};
