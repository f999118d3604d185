/** Limits of the NATS driver, the same in every process. A stream keeps those that it was created with, or that the operator's command set last. */
export interface NatsSettings {
  /** How long opening tries to reach the broker. */
  connectBudgetMs: number;
  /** How long one store, settle or look-up is retried, always with the same message id. */
  storeBudgetMs: number;
  /** The broker's dedupe window; at least 100 ms. */
  dedupeMs: number;
  /** How long frames can be replayed. */
  tokenMaxAgeMs: number;
  /** Longer than the messages that reference a blob. */
  blobMaxAgeMs: number;
  /** Maximum age of an unsettled item; its own deadline is long past by then. */
  workMaxAgeMs: number;
  /** Reserved by the broker per stream on disk; declaring fails when less is free. Together they fit a disk of 10 GB. */
  commandMaxBytes: number;
  workMaxBytes: number;
  blobMaxBytes: number;
  /** Of the broker's memory: 4,000 calls of 64 KiB within two minutes. Past it the oldest frames are dropped. */
  tokenMaxBytes: number;
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
  commandMaxBytes: 1024 * MEBIBYTE,
  workMaxBytes: 1024 * MEBIBYTE,
  blobMaxBytes: 3 * 1024 * MEBIBYTE,
  tokenMaxBytes: 256 * MEBIBYTE,
};
