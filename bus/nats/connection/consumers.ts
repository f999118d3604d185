import { type ConsumerConfig, type ConsumerInfo, JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import { z } from 'zod';
import { ulid } from '#shared/ids.ts';
import { overlapping } from './overlapping.ts';
import type { Requests } from './requests.ts';
import { API_AGAIN_MS, API_TIMEOUT_MS, CLUSTER_CREATE_MS } from './retries.ts';

/** Requests of one attempt in a cluster. Of three servers each may be placed at the one that is lost: all of them once in 81 times. */
const MOST_REQUESTS = 4;
/** Names no stream. */
const NO_STREAM = JSON.stringify({ stream_name: '', config: {} });
/** The stream of a request's body is not that of its subject. */
const OTHER_STREAM = 10056;
const refusal = z.object({ error: z.object({ code: z.number(), err_code: z.number(), description: z.string() }) });

export type NamedConfig = Partial<ConsumerConfig> & { name: string; filter_subject: string };
export type PrefixedConfig = Omit<NamedConfig, 'name'> & { prefix: string };

export interface ConsumersOptions {
  isCluster: boolean;
  manager: Pick<JetStreamManager, 'consumers'>;
  requests: Pick<Requests, 'ask'>;
}

/**
 * Creates consumers. In a cluster the leader of JetStream's API is asked first whether it is there, by a request that changes nothing: one that was paused or
 * cut off takes later what it was sent meanwhile, and nats-server 2.9 enters a consumer in the leader's table before the others agree. Behind the leader's
 * answer a creation that is not answered is repeated soon.
 */
export class Consumers {
  readonly #options: ConsumersOptions;
  /** Shared by all that wait for the leader. */
  #answering: Promise<void> | null = null;

  constructor(options: ConsumersOptions) {
    this.#options = options;
  }

  /** For several readers, which declare the same. @throws the broker's errors */
  async declare(stream: string, config: NamedConfig, leftMs: number): Promise<void> {
    await this.#create(stream, config, () => config, leftMs);
  }

  /**
   * For one reader. A cluster may place a consumer at a lost server, and leaves it there: each request has a name of its own behind `prefix`.
   * @param requested gets the names that may have been created, and loses that of the answer: the caller removes them
   * @throws the broker's errors
   */
  async open(stream: string, { prefix, ...config }: PrefixedConfig, leftMs: number, requested: Set<string>): Promise<ConsumerInfo> {
    const named = () => {
      const name = `${prefix}${ulid()}`;
      requested.add(name);
      return { ...config, name };
    };
    const info = await this.#create(stream, { ...config, name: `${prefix}${ulid()}` }, named, leftMs);
    requested.delete(info.name);
    return info;
  }

  async #create(stream: string, first: NamedConfig, next: () => NamedConfig, leftMs: number): Promise<ConsumerInfo> {
    const { isCluster, manager } = this.#options;
    const request = () => manager.consumers.add(stream, next());
    if (!isCluster) return request();
    const untilMs = performance.now() + leftMs;
    await this.#leaderAnswers(`$JS.API.CONSUMER.CREATE.${stream}.${first.name}.${first.filter_subject}`, leftMs);
    return overlapping(request, API_AGAIN_MS, Math.max(0, Math.min(untilMs - performance.now(), CLUSTER_CREATE_MS)), MOST_REQUESTS).answer;
  }

  /** @param subject of a creation, which the user may request: the leader refuses it before it looks at the config, and other servers say nothing */
  #leaderAnswers(subject: string, forMs: number): Promise<void> {
    const ask = async () => {
      const { error } = refusal.parse((await this.#options.requests.ask(subject, NO_STREAM, { timeoutMs: API_TIMEOUT_MS })).json());
      if (error.err_code !== OTHER_STREAM) throw new JetStreamApiError(error);
    };
    this.#answering ??= overlapping(ask, API_AGAIN_MS, Math.max(0, Math.min(forMs, API_TIMEOUT_MS))).answer.finally(() => {
      this.#answering = null;
    });
    return this.#answering;
  }
}
