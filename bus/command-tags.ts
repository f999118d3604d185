import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Bus } from './bus.ts';

/** 128 bits can't be guessed, and each byte is stored with each command. */
const TAG_BYTES = 16;
const TAG_LENGTH = Math.ceil((TAG_BYTES * 4) / 3);
/** The last member of the command's object, so that releases without tags ignore it. */
const BEFORE = ',"tag":"';
const BEHIND = '"}';
const MEMBER_LENGTH = BEFORE.length + TAG_LENGTH + BEHIND.length;
/** Separates this key from others of the same secret. */
const PURPOSE = 'switchyard command tag 1';

/**
 * Tags that prove that a command comes from a process with HOUSE_SECRET: a gateway, a host or the operator. NATS checks only the right to publish on `cmd.*`, not
 * the content.
 */
export class CommandTags {
  readonly #key: KeyObject;

  constructor(houseSecret: string) {
    this.#key = createSecretKey(createHmac('sha256', houseSecret).update(PURPOSE).digest());
  }

  /** @param body a JSON object with at least one member, as JSON.stringify writes it */
  tagged(body: string): string {
    return `${body.slice(0, -1)}${BEFORE}${this.#tagOf(body)}${BEHIND}`;
  }

  /** Compares byte for byte. */
  isTagged(body: string): boolean {
    const at = body.length - MEMBER_LENGTH;
    if (at < 1 || !body.startsWith(BEFORE, at) || !body.endsWith(BEHIND)) return false;
    const claimed = body.slice(at + BEFORE.length, -BEHIND.length);
    return timingSafeEqual(Buffer.from(claimed, 'latin1'), Buffer.from(this.#tagOf(`${body.slice(0, at)}}`), 'latin1'));
  }

  #tagOf(body: string): string {
    return createHmac('sha256', this.#key).update(body).digest().subarray(0, TAG_BYTES).toString('base64url');
  }
}

/** For gateways and hosts, not for workers. */
export function withTaggedCommands(bus: Bus, tags: CommandTags): Bus {
  const { commands } = bus;
  return {
    commands: {
      append: (partition, messageId, body) => commands.append(partition, messageId, tags.tagged(body)),
      read: (partition, after, handler, options) => commands.read(partition, after, handler, options),
      at: (sequence) => commands.at(sequence),
      lastOf: (partition) => commands.lastOf(partition),
      state: () => commands.state(),
      purge: (belowSequence, standing) => commands.purge(belowSequence, standing),
    },
    work: bus.work,
    notices: bus.notices,
    tokens: bus.tokens,
    blobs: bus.blobs,
    usage: bus.usage,
    isReady: () => bus.isReady(),
    connectionNumber: () => bus.connectionNumber(),
    flush: () => bus.flush(),
    hasCapacity: (kind) => bus.hasCapacity(kind),
    onReconnect: (handler) => bus.onReconnect(handler),
    close: () => bus.close(),
  };
}
