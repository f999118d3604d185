import { hasNoResponders, isAnswerOfLeader } from './broker-errors.ts';

/** What was sent shortly before may have found the next leader already. */
const SENT_BEFORE_MS = 250;

interface Stream {
  /** Publishes without an answer. */
  readonly sent: Set<{ atMs: number; end(error: unknown): void }>;
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
 * the stream before ends with that error too: its timeout would outlast the election.
 */
export class LeaderlessStreams {
  /** By the first token of its subjects. */
  readonly #streams = new Map<string, Stream>();

  publishTo(subject: string): PublishToStream {
    const name = subject.slice(0, subject.indexOf('.'));
    let stream = this.#streams.get(name);
    if (stream === undefined) {
      stream = { sent: new Set(), scout: null, waiting: new Map() };
      this.#streams.set(name, stream);
    }
    return new PublishToStream(stream);
  }
}

/** One publish, with all its attempts. */
export class PublishToStream {
  readonly #stream: Stream;

  constructor(stream: Stream) {
    this.#stream = stream;
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
    try {
      const result = await Promise.race([answer, ended]);
      this.#onLeader();
      return result;
    } catch (error) {
      if (hasNoResponders(error)) this.#onNoLeader(error);
      else if (isAnswerOfLeader(error)) this.#onLeader();
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

  #onLeader(): void {
    const { waiting } = this.#stream;
    this.#stream.scout = null;
    for (const wake of [...waiting.values()]) wake();
  }

  #onNoLeader(error: unknown): void {
    const stream = this.#stream;
    stream.scout ??= this;
    const beforeMs = performance.now() - SENT_BEFORE_MS;
    for (const attempt of [...stream.sent]) if (attempt.atMs < beforeMs) attempt.end(error);
  }
}
