/** Below the silence after which a reader sends its call to another worker (6 s): frames of both would mix. */
const MAX_AWAY_MS = 3_000;
/** Of one process: seconds of a thousand streams. */
const MAX_AWAY_BYTES = 8 * 1024 * 1024;

interface AwayDeps {
  isUp(): boolean;
  /** Loses the frame while the connection is away. */
  send(subject: string, frame: Uint8Array): void;
  /** For tests. */
  maxAwayMs?: number;
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
  /** For the rest of this absence, or for good. */
  #isGivenUp = false;

  constructor(deps: AwayDeps) {
    this.#deps = deps;
  }

  /** False: what is published now is lost. */
  get isKeeping(): boolean {
    return this.#deps.isUp() || !this.#isGivenUp;
  }

  publish(subject: string, frame: Uint8Array): void {
    if (this.#deps.isUp() || this.#isGivenUp) {
      this.#deps.send(subject, frame);
      return;
    }
    this.#held.push({ subject, frame });
    this.#bytes += frame.byteLength;
    this.#timer ??= setTimeout(() => this.#giveUp(), this.#deps.maxAwayMs ?? MAX_AWAY_MS).unref();
    if (this.#bytes > MAX_AWAY_BYTES) this.#giveUp();
  }

  /** The connection is back: sends what is held, in order. */
  onBack(): void {
    this.#isGivenUp = false;
    this.#release();
  }

  close(): void {
    this.#giveUp();
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
    for (const { subject, frame } of held) this.#deps.send(subject, frame);
  }
}
