import { TimeoutError } from '@nats-io/transport-node';
import { hasNoResponders, InProcessError, isAnswerOfLeader } from './broker-errors.ts';

/** What was sent shortly before may have found the next leader already. */
const SENT_BEFORE_MS = 250;
/** The oldest publish of a stream that is not answered for so long is sent once more: that finds out whether the leader is lost. */
const ASK_AGAIN_MS = 1_000;

interface Attempt {
  readonly atMs: number;
  end(error: unknown): void;
  sendAgain(): void;
}

interface Stream {
  /** Without an answer, in order. */
  readonly sent: Set<Attempt>;
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
 * the stream before ends with that error too: its timeout would outlast the election. The same holds where a later publish is stored: a leader stores in order.
 * A message that it has already, or has in process, it answers before those that it is still storing.
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
  /** The last one. */
  #attempt: Attempt | null = null;
  #hasLeft = false;

  constructor(stream: Stream, asksAgain: () => boolean) {
    this.#stream = stream;
    this.#asksAgain = asksAgain;
  }

  /**
   * @param isGivenUp whether its caller waits for this attempt no more: then it is not sent
   * @returns true: it may be sent, in this tick. Or whether it may be in time
   */
  mayBeSent(withinMs: number, isGivenUp: () => boolean): true | Promise<boolean> {
    const { scout } = this.#stream;
    return scout === null || scout === this ? true : this.#wait(performance.now() + withinMs, isGivenUp);
  }

  async #wait(untilMs: number, isGivenUp: () => boolean): Promise<boolean> {
    const stream = this.#stream;
    while (stream.scout !== null && stream.scout !== this) {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return false;
      this.#endWait();
      await new Promise<void>((resolve) => {
        const wake = () => {
          clearTimeout(timer);
          stream.waiting.delete(this);
          resolve();
        };
        const timer = setTimeout(wake, leftMs).unref();
        stream.waiting.set(this, wake);
      });
      if (isGivenUp()) return false;
    }
    return performance.now() < untilMs;
  }

  /** Of an attempt that was given up. */
  #endWait(): void {
    this.#stream.waiting.get(this)?.();
  }

  /**
   * One attempt: what is answered first counts. A leader that has it in process when it is sent again answers the first sending later.
   * @param send may be called again
   * @throws what `send` throws, or that another publish has found no leader
   */
  async answered<Result extends { duplicate: boolean }>(send: () => Promise<Result>): Promise<Result> {
    const { sent } = this.#stream;
    this.#forget();
    const attempt: Attempt = { atMs: performance.now(), end: () => {}, sendAgain: () => {} };
    this.#attempt = attempt;
    const answer = new Promise<Result>((resolve, reject) => {
      attempt.end = reject;
      attempt.sendAgain = () => this.#note(send(), resolve, (error) => error instanceof InProcessError || reject(error));
      this.#note(send(), resolve, reject);
    });
    sent.add(attempt);
    this.#watch();
    try {
      return await answer;
    } finally {
      sent.delete(attempt);
    }
  }

  /** Settles the attempt first: what is found out may end those that were sent before. */
  #note<Result extends { duplicate: boolean }>(answer: Promise<Result>, resolve: (result: Result) => void, reject: (error: unknown) => void): void {
    const sentAtMs = performance.now();
    answer.then(
      (result) => {
        resolve(result);
        this.#onLeader();
        if (!result.duplicate) this.#onStored(sentAtMs);
      },
      (error) => {
        reject(error);
        if (hasNoResponders(error)) this.#onNoLeader(error);
        else if (isAnswerOfLeader(error)) this.#onLeader();
      },
    );
  }

  /** It is stored, or given up: then another one finds out. */
  leave(): void {
    const stream = this.#stream;
    this.#hasLeft = true;
    this.#forget();
    this.#endWait();
    if (stream.scout !== this) return;
    const [next] = stream.waiting;
    stream.scout = next?.[0] ?? null;
    next?.[1]();
  }

  /** An attempt that was given up is not sent again. */
  #forget(): void {
    if (this.#attempt !== null) this.#stream.sent.delete(this.#attempt);
  }

  #onLeader(): void {
    this.#stream.scout = null;
    for (const wake of [...this.#stream.waiting.values()]) wake();
  }

  #onStored(sentAtMs: number): void {
    const [oldest] = this.#stream.sent;
    if (oldest !== undefined && oldest.atMs < sentAtMs - SENT_BEFORE_MS && this.#asksAgain()) this.#endBefore(sentAtMs, new TimeoutError());
  }

  #onNoLeader(error: unknown): void {
    if (!this.#hasLeft) this.#stream.scout ??= this;
    this.#endBefore(performance.now(), error);
  }

  #endBefore(atMs: number, error: unknown): void {
    for (const attempt of this.#stream.sent) {
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
      if (sinceMs >= ASK_AGAIN_MS && this.#asksAgain()) oldest.sendAgain();
      stream.again = setTimeout(look, ASK_AGAIN_MS).unref();
    };
    stream.again ??= setTimeout(look, ASK_AGAIN_MS).unref();
  }
}
