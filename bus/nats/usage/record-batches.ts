import { ulid } from '#shared/ids.ts';
import type { UsageMessage } from '../../bus.ts';
import { MAX_USAGE_BYTES } from '../../usage-limits.ts';
import type { HeldFrames } from '../tokens/held-frames.ts';
import { PACKED_ID, packed } from './packed-records.ts';

const MAX_RECORDS = 200;

interface Batch {
  records: UsageMessage[];
  /** Of its records: a repeat within the tick is left out, as the broker leaves out later ones. */
  ids: Set<string>;
  chars: number;
  stored: Promise<void>;
  settle(publishing: Promise<void>): void;
}

export type PublishRecords = (messageId: string, body: string) => Promise<void>;

/**
 * Sends the records of one tick as one message, ahead of the frames that were published meanwhile: to this process, the broker and the ledger a message costs
 * many times a record (ADR 57).
 */
export class RecordBatches {
  readonly #held: HeldFrames;
  readonly #publish: PublishRecords;
  /** Each message of several records has an id of its own: if one were used twice, the broker would drop records. */
  readonly #idPrefix = `${PACKED_ID}${ulid()}`;
  #sent = 0;
  #batch: Batch | null = null;

  constructor(held: HeldFrames, publish: PublishRecords) {
    this.#held = held;
    this.#publish = publish;
  }

  /** Settles with the message that has the record. */
  append(messageId: string, body: string): Promise<void> {
    // Characters may have three bytes.
    if (this.#batch !== null && (this.#batch.chars + body.length) * 3 > MAX_USAGE_BYTES) this.#held.release();
    const batch = this.#batch ?? this.#begin();
    if (!batch.ids.has(messageId)) {
      batch.ids.add(messageId);
      batch.records.push({ messageId, body });
      batch.chars += messageId.length + body.length;
    }
    if (batch.records.length >= MAX_RECORDS) this.#held.release();
    return batch.stored;
  }

  #begin(): Batch {
    let settle: Batch['settle'] = () => {};
    const stored = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#batch = { records: [], ids: new Set(), chars: 0, stored, settle };
    this.#held.holdBehind(() => this.#send());
    return this.#batch;
  }

  #send(): void {
    const batch = this.#batch;
    const [first] = batch?.records ?? [];
    if (batch === null || first === undefined) return;
    this.#batch = null;
    const { records, settle } = batch;
    this.#sent += 1;
    const publishing = records.length === 1 ? this.#publish(first.messageId, first.body) : this.#publish(`${this.#idPrefix}-${this.#sent}`, packed(records));
    settle(publishing);
  }
}
