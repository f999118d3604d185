import { type CommandRefusal, type CommandReply, isTransientRefusal } from '#bus/messages/session.ts';

export interface Reply {
  reply: CommandReply;
  repeat: boolean;
  /** A transient refusal, while the log has dropped this copy as the repeat of an earlier one. */
  isOfEarlier?: boolean;
}

/** A copy's position in the log. `duplicate`: its message id was there already. */
export interface Stored {
  sequence: number;
  duplicate: boolean;
}

/** Bound of the difference of a gateway's clock and the broker's. */
const MAX_SKEW_MS = 5_000;

/**
 * One copy of a command in the log, and the wait for its reply. Replies name the command, of which there may be several copies: one that was refused for the
 * moment is followed by another, and requests with the same idempotency key send copies at the same time. Refusals for the moment say their positions.
 */
export class AwaitedCopy {
  readonly reply: Promise<Reply>;
  readonly #sentAtMs: number;
  #resolve: (reply: Reply) => void = () => {};
  #stored: Stored | null = null;
  /** Came before the publish acknowledgement. */
  #early: Reply[] = [];
  #isDoubtful = false;

  /** @param sentAtMs before it was stored, by this process's clock */
  constructor(sentAtMs: number) {
    this.#sentAtMs = sentAtMs;
    this.reply = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** A refusal is as late as the copy, but of an earlier time: of a log that was replaced or rolled back, if the clocks are right. */
  get isDoubtful(): boolean {
    return this.#isDoubtful;
  }

  /** Where the copy is now. Replies that came before are compared with that. */
  stored(at: Stored): void {
    this.#stored = at;
    for (const reply of this.#early.splice(0)) this.offer(reply);
  }

  /** A reply to one of the command's copies. */
  offer(offered: Reply): void {
    if (this.#stored === null && isTransientRefusal(offered.reply)) {
      this.#early.push(offered);
      return;
    }
    const reply = this.accept(offered);
    if (reply !== null) this.#resolve(reply);
  }

  /** Null: a transient refusal of an earlier copy, while the owner has yet to apply this one. Once the copy is stored. */
  accept(offered: Reply): Reply | null {
    const { reply } = offered;
    if (!isTransientRefusal(reply) || this.#stored === null) return offered;
    const { duplicate, sequence } = this.#stored;
    if (duplicate) return { ...offered, isOfEarlier: true };
    // A later copy is applied behind this one: the same holds for both.
    return this.#isBefore(reply, sequence) ? null : offered;
  }

  #isBefore({ sequence, storedAtMs }: CommandRefusal, own: number): boolean {
    // Its own, whatever the clocks say.
    if (sequence === undefined || sequence === own) return false;
    if (sequence < own) return true;
    const isOfEarlierLog = storedAtMs !== undefined && storedAtMs < this.#sentAtMs - MAX_SKEW_MS;
    this.#isDoubtful ||= isOfEarlierLog;
    return isOfEarlierLog;
  }
}
