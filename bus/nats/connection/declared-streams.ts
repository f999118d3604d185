import type { JetStreamManager } from '@nats-io/jetstream';
import type { Log } from '#shared/telemetry/log.ts';
import { pauseFor } from '../../pause.ts';
import { overlapping } from './overlapping.ts';
import { API_AGAIN_MS, API_TIMEOUT_MS } from './retries.ts';

/**
 * Wait between finding a stream missing and creating it. nats-server 2.9 reports a deletion before it has removed the files, and then removes a new stream's
 * with them: what that has acknowledged is lost.
 */
const DELETION_SETTLES_MS = 1_500;

/** When each stream was created, by name: another time is another stream. */
export type StreamIdentities = ReadonlyMap<string, string>;

export interface DeclaringWith {
  manager: JetStreamManager;
  /** For requests that change nothing. */
  lookUp: <Result>(call: (manager: JetStreamManager) => Promise<Result>) => Promise<Result>;
}

/** @param beforeCreating awaited before a missing stream is created @returns identities of the streams */
export type Declare = (declaring: DeclaringWith, beforeCreating?: () => Promise<void>) => Promise<StreamIdentities>;

export interface DeclaredStreamsOptions {
  manager: JetStreamManager;
  /** In a cluster it gives requests up sooner than `manager`. */
  changes: JetStreamManager;
  isCluster: boolean;
  declare: Declare;
  address: string;
  log: Log;
}

/** The streams of a process at the broker, as they were last declared. */
export class DeclaredStreams {
  readonly #options: DeclaredStreamsOptions;
  readonly #handlers = new Set<() => void>();
  #identities: StreamIdentities = new Map();
  #redeclaring: Promise<void> | null = null;

  constructor(options: DeclaredStreamsOptions) {
    this.#options = options;
  }

  /** @throws `bus.stream_refused`, and the broker's errors */
  async declare(beforeCreating?: () => Promise<void>): Promise<void> {
    const { manager, changes, isCluster, declare } = this.#options;
    // Creations never overlap: a cluster answers the second one at once, before the stream has a leader that stores what is published.
    const lookUp = <Result>(call: (one: JetStreamManager) => Promise<Result>) =>
      isCluster ? overlapping(() => call(manager), API_AGAIN_MS, API_TIMEOUT_MS).answer : call(manager);
    this.#identities = await declare({ manager: changes, lookUp }, beforeCreating);
  }

  /**
   * Called after a stream was found to be another one on a live connection: its consumers are lost.
   * @returns removes the handler
   */
  onRedeclare(handler: () => void): () => void {
    this.#handlers.add(handler);
    return () => void this.#handlers.delete(handler);
  }

  /** A stream was deleted in use, or has no leader at this moment. Concurrent callers share one declaration. Never rejects. */
  redeclare(): Promise<void> {
    const { address, log } = this.#options;
    this.#redeclaring ??= this.declareInUse(() => pauseFor(DELETION_SETTLES_MS))
      .catch((error) => log.warn({ err: error, address }, 'a stream is missing and could not be declared'))
      .finally(() => {
        this.#redeclaring = null;
      });
    return this.#redeclaring;
  }

  /** As `declare`, while the streams are in use: readers of one that is another one now have lost their consumers. */
  async declareInUse(beforeCreating?: () => Promise<void>): Promise<void> {
    const before = this.#identities;
    await this.declare(beforeCreating);
    if ([...this.#identities].every(([name, created]) => before.get(name) === created)) return;
    for (const handler of [...this.#handlers]) handler();
  }
}
