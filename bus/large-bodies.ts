import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Bus, CommandLog, ReadOptions, StoredCommand, WorkItem, WorkQueue } from './bus.ts';
import { withLargeFrames } from './large-frames.ts';
import { textOfUtf8 } from './text-of-utf8.ts';

/** The largest body of a command or item, in UTF-8 bytes. */
export const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** Larger bodies that are stored are blobs: brokers slow down with large messages. */
const MAX_INLINE_BYTES = 512 * 1024;
/** Characters of fetched bodies per batch: a batch of references could stand for gigabytes. */
const MAX_BATCH_CHARACTERS = 32 * 1024 * 1024;
/** Extensions of an item's lease within its length, while its blob is fetched. */
const EXTENSIONS_PER_LEASE = 3;
/** Delay of the nak when a blob could not be read. */
const RETRY_MS = 1_000;

/**
 * The body of a command with a blob that is lost or older than 24 hours. The command is still delivered, since skipping it would halt its partition. It fits
 * no schema, so it is handled like any unprocessable command.
 */
export const LOST_BODY = '{"lost":true}';

/* On the wire:  `blob:<id>` a reference   `text:<body>` a body that begins like one of these two   anything else: the body itself. */
const BLOB = 'blob:';
const TEXT = 'text:';
const MARK_BYTES = 5;

/**
 * Lets commands and work carry bodies of up to 32 MiB as blobs, and tokens large frames in parts. Bodies are well-formed text. Storing a blob takes time: of
 * two concurrent appends, one of them large, either may come first.
 */
export function withLargeBodies(inner: Bus): Bus {
  return {
    commands: commandsOver(inner),
    work: workOver(inner),
    notices: inner.notices,
    tokens: withLargeFrames(inner.tokens),
    blobs: inner.blobs,
    usage: inner.usage,
    isReady: () => inner.isReady(),
    connectionNumber: () => inner.connectionNumber(),
    flush: () => inner.flush(),
    hasCapacity: (kind) => inner.hasCapacity(kind),
    onReconnect: (handler) => inner.onReconnect(handler),
    close: () => inner.close(),
  };
}

function commandsOver(bus: Bus): CommandLog {
  const restore = async (command: StoredCommand): Promise<StoredCommand> => {
    const body = await unpack(bus, command.body);
    return { ...command, body: body ?? LOST_BODY };
  };
  return {
    async append(partition, messageId, body) {
      const packed = pack(bus, body);
      // Awaited only for blobs, to keep the order of small commands.
      return bus.commands.append(partition, messageId, typeof packed === 'string' ? packed : await packed);
    },
    read(partition, after, handler, options = {}) {
      // A batch that fails half-way is redelivered whole; what was already processed is skipped.
      let read = after.sequence;
      const counting: ReadOptions = {
        ...options,
        onRestart: () => {
          // Sequences of the new log have no relation to `read`.
          read = 0;
          options.onRestart?.();
        },
      };
      const deliver = async (commands: StoredCommand[]) => {
        if (commands.length === 0) return;
        await handler(commands);
        read = commands.at(-1)?.sequence ?? read;
      };
      return bus.commands.read(
        partition,
        after,
        async (stored) => {
          if (!stored.some(({ body }) => isPrefixed(body))) return deliver(stored.filter(({ sequence }) => sequence > read));
          let batch: StoredCommand[] = [];
          let characters = 0;
          for (const command of stored.filter(({ sequence }) => sequence > read)) {
            const restored = await restore(command);
            if (characters + restored.body.length > MAX_BATCH_CHARACTERS) {
              await deliver(batch);
              batch = [];
              characters = 0;
            }
            batch.push(restored);
            characters += restored.body.length;
          }
          await deliver(batch);
        },
        counting,
      );
    },
    async at(sequence) {
      const command = await bus.commands.at(sequence);
      return command === null ? null : restore(command);
    },
    lastOf: (partition) => bus.commands.lastOf(partition),
    state: () => bus.commands.state(),
    purge: (belowSequence, standing) => bus.commands.purge(belowSequence, standing),
  };
}

function workOver(bus: Bus): WorkQueue {
  return {
    async publish(kind, messageId, body, earlierDeliveries) {
      const packed = pack(bus, body);
      return bus.work.publish(kind, messageId, typeof packed === 'string' ? packed : await packed, earlierDeliveries);
    },
    dispatch(kind, messageId, body) {
      const most = bus.work.maxDispatchBytes();
      if (body.byteLength > most) throw tooLarge(body.byteLength, most);
      const start = textOfUtf8(body.subarray(0, MARK_BYTES));
      bus.work.dispatch(kind, messageId, isPrefixed(start) ? Buffer.concat([Buffer.from(TEXT), body]) : body);
    },
    maxDispatchBytes: () => bus.work.maxDispatchBytes(),
    onRefused: (handler) => bus.work.onRefused(handler),
    onStored: (handler) => bus.work.onStored(handler),
    earliestDispatchAtMs: bus.work.earliestDispatchAtMs,
    consume(kind, options, handler) {
      const unpacked = async (item: WorkItem) => {
        let body: string | null;
        try {
          const fetch = () => unpack(bus, item.body);
          body = await (item.body.startsWith(BLOB) ? leased(item, options.ackWaitMs, fetch) : fetch());
        } catch (error) {
          await item.nak(RETRY_MS);
          throw error;
        }
        if (body === null) return item.term('the blob that held its body is gone');
        return handler(withBody(item, body));
      };
      return bus.work.consume(kind, options, (item) => (isPrefixed(startOf(item)) ? unpacked(item) : handler(item)));
    },
    createdAtMs: () => bus.work.createdAtMs(),
    onRestart: (handler) => bus.work.onRestart(handler),
    depths: () => bus.work.depths(),
  };
}

/**
 * Extends the lease until the work has ended. Two thirds of it or more are left then: an item that was extended shortly before is begun without the broker's
 * reply, which may be late while its consumer has no leader.
 * @throws `bus.lease_lost`, and what `work` throws
 */
async function leased<Result>(item: WorkItem, ackWaitMs: number, work: () => Promise<Result>): Promise<Result> {
  const everyMs = ackWaitMs / EXTENSIONS_PER_LEASE;
  let extendedAt = performance.now();
  const extend = async () => {
    const sentAt = performance.now();
    await item.working();
    extendedAt = Math.max(extendedAt, sentAt);
  };
  // A failed extension is noticed by the next one.
  const timer = setInterval(() => void extend().catch(() => {}), everyMs);
  try {
    const result = await work();
    if (performance.now() - extendedAt >= everyMs) await extend();
    return result;
  } finally {
    clearInterval(timer);
  }
}

/** Long bodies are not decoded for it. */
function startOf(item: WorkItem): string {
  return item.bytes ? textOfUtf8(item.bytes.subarray(0, MARK_BYTES)) : item.body;
}

/** No spread: it would drop the methods of a class instance. */
function withBody(item: WorkItem, body: string): WorkItem {
  return {
    messageId: item.messageId,
    body,
    deliveryCount: item.deliveryCount,
    ...(item.attempt !== undefined && { attempt: item.attempt }),
    publishedAtMs: item.publishedAtMs,
    ack: () => item.ack(),
    nak: (delayMs) => item.nak(delayMs),
    term: (reason) => item.term(reason),
    working: () => item.working(),
  };
}

/** @throws `bus.body_too_large` */
function pack(bus: Bus, body: string): string | Promise<string> {
  // At most three bytes per character: most bodies need no counting.
  if (body.length * 3 > MAX_INLINE_BYTES) {
    const sizeBytes = Buffer.byteLength(body);
    if (sizeBytes > MAX_BODY_BYTES) throw tooLarge(sizeBytes, MAX_BODY_BYTES);
    if (sizeBytes > MAX_INLINE_BYTES) return bus.blobs.put(Buffer.from(body)).then((id) => BLOB + id);
  }
  return prefixed(body);
}

function tooLarge(sizeBytes: number, most: number): SwitchyardError {
  return new SwitchyardError('bus.body_too_large', `a body has ${sizeBytes} bytes, ${most} is the most`, { details: { size_bytes: sizeBytes } });
}

function prefixed(body: string): string {
  return isPrefixed(body) ? TEXT + body : body;
}

/** Null when the blob is lost or expired. */
async function unpack(bus: Bus, packed: string): Promise<string | null> {
  if (packed.startsWith(TEXT)) return packed.slice(TEXT.length);
  if (!packed.startsWith(BLOB)) return packed;
  const bytes = await bus.blobs.get(packed.slice(BLOB.length));
  return bytes === null ? null : textOfUtf8(bytes);
}

function isPrefixed(text: string): boolean {
  return text.startsWith(BLOB) || text.startsWith(TEXT);
}
