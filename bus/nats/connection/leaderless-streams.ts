import { TimeoutError } from '@nats-io/transport-node';
import { hasNoResponders, isAnswerOfLeader } from './broker-errors.ts';

/** What was sent shortly before may have found the next leader already. */
const SENT_BEFORE_MS = 250;
/** A publish that is not answered for so long is sent again, one of a stream at a time: it finds out whether its leader is lost. */
const ASK_AGAIN_MS = 1_000;

interface Stream {
  /** Publishes without an answer. */
  readonly sent: Set<{ atMs: number; end(error: unknown): void }>;
  /** Sends the oldest of them again. */
  again: NodeJS.Timeout | null;
  /** Its repetitions find out whether there is a leader; null: as far as is known there is one. */
  scout: PublishToStream | null;
  /** In order. */
  readonly waiting: Map<PublishToStream, () => void>;
}

/**
 * Publishes to streams of a cluster, which have no leader during an election. One publish of a stream is repeated until there is a leader, and the others
 * wait for its answer: they are sent at once then, and cost the brokers nothing before.
 *
 * A leader that is lost without a closed connection never answers. Once the other servers have given it up, publishes find no responders, and what was sent to
 * the stream before ends with that error too: its timeout would outlast the election. The same holds where a later publish is answered: a leader answers in
 * order.
 */
export class LeaderlessStreams {
  /** By the first token of its subjects. */
  readonly #streams = new Map<string, Stream>();
  readonly #asksAgain: () => boolean;

  /** @param asksAgain whether the servers recognise a repeated publish before they log it (docs/adr/0124) */
  constructor(asksAgain: () => boolean) {
    this.#asksAgain = asksAgain;
  }

  publishTo(subject: string): PublishToStream {
    const name = subject.slice(0, subject.indexOf('.'));
    let stream = this.#streams.get(name);
    if (stream === undefined) {
      stream = { sent: new Set(), again: null, scout: null, waiting: new Map() };
      this.#streams.set(name, stream);
    }
    return new PublishToStream(stream, this.#asksAgain);
  }
}

/** One publish, with all its attempts. */
export class PublishToStream {
  readonly #stream: Stream;
  readonly #asksAgain: () => boolean;

  constructor(stream: Stream, asksAgain: () => boolean) {
    this.#stream = stream;
    this.#asksAgain = asksAgain;
  }

  /** @returns true: it may be sent, in this tick. Or whether it may be in time */
  mayBeSent(withinMs: number): true | Promise<boolean> {
    const { scout } = this.#stream;
    return scout === null || scout === this ? true : this.#wait(performance.now() + withinMs);
  }

  async #wait(untilMs: number): Promise<boolean> {
    const stream = this.#stream;
    while (stream.scout !== null && stream.scout !== this) {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return false;
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          stream.waiting.delete(this);
          resolve();
        };
        const timer = setTimeout(wake, leftMs);
        stream.waiting.set(this, wake);
      });
    }
    return true;
  }

  /** @param answer of one attempt @throws what `answer` throws, or that another publish has found no leader */
  async answered<Result>(answer: Promise<Result>): Promise<Result> {
    const { sent } = this.#stream;
    const attempt = { atMs: performance.now(), end: (_error: unknown) => {} };
    const ended = new Promise<never>((_, reject) => {
      attempt.end = reject;
    });
    sent.add(attempt);
    this.#watch();
    try {
      const result = await Promise.race([answer, ended]);
      this.#onLeader(attempt.atMs);
      return result;
    } catch (error) {
      if (hasNoResponders(error)) this.#onNoLeader(error);
      else if (isAnswerOfLeader(error)) this.#onLeader(attempt.atMs);
      throw error;
    } finally {
      sent.delete(attempt);
    }
  }

  /** It is stored, or given up: then another one finds out. */
  leave(): void {
    const stream = this.#stream;
    if (stream.scout !== this) return;
    const [next] = stream.waiting;
    stream.scout = next?.[0] ?? null;
    next?.[1]();
  }

  #onLeader(sentAtMs: number): void {
    const { waiting } = this.#stream;
    this.#stream.scout = null;
    for (const wake of [...waiting.values()]) wake();
    const [oldest] = this.#stream.sent;
    if (oldest !== undefined && oldest.atMs < sentAtMs - SENT_BEFORE_MS && this.#asksAgain()) this.#endBefore(sentAtMs, new TimeoutError());
  }

  #onNoLeader(error: unknown): void {
    this.#stream.scout ??= this;
    this.#endBefore(performance.now(), error);
  }

  #endBefore(atMs: number, error: unknown): void {
    for (const attempt of this.#stream.sent) {
      // In order.
      if (attempt.atMs >= atMs - SENT_BEFORE_MS) return;
      attempt.end(error);
    }
  }

  /** While something is not answered. */
  #watch(): void {
    const stream = this.#stream;
    const look = () => {
      stream.again = null;
      const [oldest] = stream.sent;
      if (oldest === undefined) return;
      const sinceMs = performance.now() - oldest.atMs;
      if (sinceMs >= ASK_AGAIN_MS && this.#asksAgain()) oldest.end(new TimeoutError());
      stream.again = setTimeout(look, ASK_AGAIN_MS).unref();
    };
    stream.again ??= setTimeout(look, ASK_AGAIN_MS).unref();
  }
}
