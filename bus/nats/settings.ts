/** Limits and windows of the NATS driver. Every process of a deployment has the same: those of a stream hold that it was created with, or that the operator's command gave it last. */
export interface NatsSettings {
  /** How long opening tries to reach the broker. */
  connectBudgetMs: number;
  /** How long a single thing to be stored, settled or looked up is tried again, always under the same id. */
  storeBudgetMs: number;
  /** How long the broker remembers a message id. At least 100 ms. */
  dedupeMs: number;
  /** How long frames can be read back. */
  tokenMaxAgeMs: number;
  /** How long a large body is kept: longer than what names it. */
  blobMaxAgeMs: number;
  /** How long an item waits to be done. Every item has a deadline of its own that is long past by then. */
  workMaxAgeMs: number;
  /** The broker sets this much aside for each stream on disk, and refuses to declare them when it has less. Together they fit a disk of 10 GB. */
  commandMaxBytes: number;
  workMaxBytes: number;
  blobMaxBytes: number;
  /** Of the broker's memory. Sized never to be reached: 4,000 calls of 64 KiB within two minutes; past it the oldest frames go first. */
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
