/**
 * Counted from the loss. Below the silence after which a reader sends its call to another worker (6 s), and the rest of a lease that could last be extended 2 s
 * before the loss (4 s): frames of two workers would mix.
 */
const MAX_AWAY_MS = 3_000;
/** A timer is late on a busy machine; frames that are later than this were held by a process that was paused. */
const LATE_MS = 1_000;
/** Of one process: seconds of a thousand streams. */
const MAX_AWAY_BYTES = 8 * 1024 * 1024;

interface AwayDeps {
  /** Loses the frame while the connection is away. */
  send(subject: string, frame: Uint8Array): void;
  /** @param count frames that are too old to be sent */
  onDropped(count: number): void;
  /** For tests. */
  maxAwayMs?: number;
  nowMs?(): number;
}

/**
 * Holds what is sent while its connection is away, as for the tenths of a second in which a process changes to another server of a cluster: an answer without
 * its first frame can't be read, and one without its last frame counts as broken off. An absence that is longer than `MAX_AWAY_MS`, or has more bytes than
 * `MAX_AWAY_BYTES`, loses its frames.
 */
export class AwayFrames {
  readonly #deps: AwayDeps;
  #held: { subject: string; frame: Uint8Array }[] = [];
  #bytes = 0;
  #timer: NodeJS.Timeout | null = null;
  /** By `performance.now()`; null: the connection is there. */
  #awaySinceMs: number | null = null;
  /** For the rest of this absence, or for good. */
  #isGivenUp = false;
  #onSettled: (() => void)[] = [];

  constructor(deps: AwayDeps) {
    this.#deps = deps;
  }

  /** False: what is published now is lost. */
  get isKeeping(): boolean {
    return this.#awaySinceMs === null || !this.#isGivenUp;
  }

  publish(subject: string, frame: Uint8Array): void {
    if (this.#awaySinceMs === null || this.#isGivenUp) {
      this.#deps.send(subject, frame);
      return;
    }
    this.#held.push({ subject, frame });
    this.#bytes += frame.byteLength;
    if (this.#bytes > MAX_AWAY_BYTES) this.#giveUp();
  }

  /** The connection is lost, or about to be left. Once more during an absence changes nothing. */
  onAway(): void {
    if (this.#awaySinceMs !== null) return;
    this.#awaySinceMs = this.#nowMs();
    this.#timer = setTimeout(() => this.#giveUp(), this.#maxAwayMs).unref();
  }

  /** The connection is back: sends what is held, in order. */
  onBack(): void {
    this.#release();
    this.#awaySinceMs = null;
    this.#isGivenUp = false;
  }

  /** Resolves when nothing is held: it was sent, or is lost since the absence lasts too long. Keeps the process alive until then. */
  settled(): Promise<void> {
    if (this.#held.length === 0) return Promise.resolve();
    this.#timer?.ref();
    return new Promise((resolve) => this.#onSettled.push(resolve));
  }

  close(): void {
    this.#giveUp();
  }

  get #maxAwayMs(): number {
    return this.#deps.maxAwayMs ?? MAX_AWAY_MS;
  }

  #nowMs(): number {
    return this.#deps.nowMs?.() ?? performance.now();
  }

  #giveUp(): void {
    this.#isGivenUp = true;
    this.#release();
  }

  #release(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const held = this.#held;
    [this.#held, this.#bytes] = [[], 0];
    const isLate = this.#awaySinceMs !== null && this.#nowMs() - this.#awaySinceMs > this.#maxAwayMs + LATE_MS;
    if (isLate && held.length > 0) this.#deps.onDropped(held.length);
    if (!isLate) for (const { subject, frame } of held) this.#deps.send(subject, frame);
    for (const settled of this.#onSettled.splice(0)) settled();
  }
}
