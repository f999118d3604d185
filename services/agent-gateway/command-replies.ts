import { z } from 'zod';
import type { Bus, Subscription } from '#bus/bus.ts';
import type { CommandReply, SessionCommand } from '#bus/messages/session.ts';
import { partitionOf } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import { QueueingDelay } from '#shared/admission.ts';
import { failureOf, SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import { jsonIn } from '#shared/json-in.ts';
import { ObjectMap } from '#shared/object-map.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { traceIdIn } from '#shared/telemetry/trace-context.ts';
import { noTracing, type Tracing } from '#shared/telemetry/tracing.ts';
import { within } from '#shared/within.ts';
import { AwaitedCopy, type Reply, type Stored } from './awaited-copy.ts';
import { commandSpan } from './command-span.ts';
import { limits, type Waits } from './limits.ts';
import type { ProcessedCommands } from './processed-commands.ts';
import { commandReply } from './reply-schema.ts';

const replyMessage = z.object({ v: z.literal(1), commandId: z.string(), repeat: z.boolean(), answer: commandReply });

/** A stored command; its request timed out. */
interface LateCommand {
  commandId: string;
  expiresAtMs: number;
}

interface CommandRepliesDeps {
  bus: Bus;
  processedCommands: ProcessedCommands;
  waits: Waits;
  log: Log;
  tracing?: Tracing;
}

/** `repeat`: the command was sent before; this is its first reply. Null: durable, but no reply in time. */
export type Outcome = { reply: CommandReply; repeat: boolean } | null;

/** Appends commands to the log and waits for replies, on one subscription per gateway. A lost reply is read from the database. */
export class CommandReplies {
  /** This gateway's name in `ans.<gateway>`. */
  readonly gatewayId = `agw-${ulid()}`;
  readonly #deps: CommandRepliesDeps;
  /** By command id. Requests with the same idempotency key wait for the same command. */
  readonly #waiters = new ObjectMap<AwaitedCopy[]>();
  #waiting = 0;
  readonly #late = new ObjectMap<LateCommand>();
  #replied = 0;
  readonly #queueingDelay = new QueueingDelay();
  #subscription: Subscription | null = null;

  constructor(deps: CommandRepliesDeps) {
    this.#deps = deps;
  }

  open(): void {
    this.#subscription = this.#deps.bus.notices.subscribe(subjectOf(addresses.replies, this.gatewayId), (_subject, body) => this.#onReply(body));
  }

  async close(): Promise<void> {
    await this.#subscription?.stop();
    this.#subscription = null;
  }

  /**
   * @param waitMs for the reply, once the command is durable
   * @throws `service.no_answer` when it is not durable in time, or it is not known whether it was refused; `service.overloaded` when too many are waiting
   */
  async send(command: SessionCommand, waitMs: number): Promise<Outcome> {
    this.#assertCapacity();
    const { commandId } = command;
    this.#waiting += 1;
    try {
      let reply = await this.#sendCopy(command, commandId, waitMs);
      // Under another message id the log stores it, and the owner applies it again.
      if (reply?.isOfEarlier === true) reply = await this.#sendCopy(command, `${commandId}-${ulid()}`, waitMs);
      return reply && { reply: reply.reply, repeat: reply.repeat };
    } finally {
      this.#waiting -= 1;
    }
  }

  async #sendCopy(command: SessionCommand, messageId: string, waitMs: number): Promise<Reply | null> {
    const { commandId, sessionId, type, traceparent, sentAtMs } = command;
    const copy = new AwaitedCopy(sentAtMs);
    // First: the reply may precede the publish acknowledgement.
    this.#register(commandId, copy);
    try {
      const stored = await this.#publish(command, messageId);
      // The id of another copy is new: a duplicate of it is a retry of the bus.
      const isRepeat = stored.duplicate && messageId === commandId;
      copy.stored({ sequence: stored.sequence, duplicate: isRepeat });
      const fields = { command_id: commandId, session_id: sessionId, trace_id: traceIdIn(traceparent), type, repeat: isRepeat };
      this.#deps.log.info(fields, 'a command was accepted');
      const reply = await this.#replyTo(command, copy, { waitMs, reads: isRepeat });
      if (reply === null) {
        this.#late.set(commandId, { commandId, expiresAtMs: performance.now() + this.#deps.waits.lateMs });
        if (copy.isDoubtful) throw new SwitchyardError('service.no_answer', 'the command may have been refused; send it again with the same idempotency key');
        return null;
      }
      if (reply.isOfEarlier !== true) this.#replied += 1;
      return { ...reply, repeat: reply.repeat || isRepeat };
    } finally {
      this.#unregister(commandId, copy);
    }
  }

  async #publish(command: SessionCommand, messageId: string): Promise<Stored> {
    const { bus, waits, tracing = noTracing } = this.#deps;
    const span = commandSpan(tracing, command, { parent: command.traceparent });
    try {
      const body = JSON.stringify({ ...command, traceparent: span.traceparent });
      const stored = await within(waits.replyMs, bus.commands.append(partitionOf(command.sessionId), messageId, body), () => {
        throw new SwitchyardError('service.no_answer', 'the command could not be stored in time; send it again with the same idempotency key');
      });
      span.end(null);
      return stored;
    } catch (error) {
      span.end(failureOf(error).code);
      throw error;
    }
  }

  /** Reads the processed command after each silence, and once more when the time is up; with `reads` at once, since the log has the command already. */
  async #replyTo({ sessionId, commandId }: SessionCommand, copy: AwaitedCopy, { waitMs, reads: readsFirst }: { waitMs: number; reads: boolean }) {
    const { processedCommands, waits } = this.#deps;
    const endsAtMs = performance.now() + waitMs;
    /** A read in flight is awaited, not repeated. */
    let reading: Promise<Reply | null> | null = null;
    const read = async (): Promise<Reply | null> => {
      const reply = await processedCommands.read(sessionId, commandId);
      reading = null;
      return reply && copy.accept({ reply, repeat: false });
    };
    for (let reads = readsFirst; ; reads = true) {
      const isLast = reads && performance.now() >= endsAtMs;
      if (reads) {
        reading ??= read();
        const limitMs = isLast ? waits.lastReadMs : Math.min(waits.silenceMs, endsAtMs - performance.now());
        const found = await within(limitMs, Promise.race([copy.reply, reading]), () => null);
        if (found !== null) return found;
      }
      if (isLast) return null;
      const received = await within(Math.max(0, Math.min(waits.silenceMs, endsAtMs - performance.now())), copy.reply, () => null);
      if (received !== null) return received;
    }
  }

  #onReply(body: string): void {
    const message = replyMessage.safeParse(jsonIn(body));
    if (!message.success) {
      this.#deps.log.warn({ gateway_id: this.gatewayId }, 'a reply to a command could not be parsed');
      return;
    }
    const { commandId, repeat, answer: reply } = message.data;
    if (this.#late.delete(commandId)) this.#replied += 1;
    for (const copy of this.#waiters.get(commandId) ?? []) copy.offer({ reply, repeat });
  }

  /** Stored commands must be applied eventually: no more are admitted than the owners apply in a few seconds. */
  #assertCapacity(): void {
    const nowMs = performance.now();
    const waiting = this.#waiting + this.#late.size;
    if (this.#queueingDelay.isDue(nowMs)) {
      for (const { commandId, expiresAtMs } of this.#late.values()) if (expiresAtMs <= nowMs) this.#late.delete(commandId);
      this.#queueingDelay.sample({ atMs: nowMs, waiting, dequeued: this.#replied });
    }
    if (waiting >= limits.waitingCommands || !this.#queueingDelay.admits(nowMs)) {
      throw new SwitchyardError('service.overloaded', 'too many requests are waiting for replies');
    }
  }

  #register(commandId: string, copy: AwaitedCopy): void {
    const copies = this.#waiters.get(commandId);
    if (copies === undefined) this.#waiters.set(commandId, [copy]);
    else copies.push(copy);
  }

  #unregister(commandId: string, copy: AwaitedCopy): void {
    const others = this.#waiters.get(commandId)?.filter((other) => other !== copy) ?? [];
    if (others.length > 0) this.#waiters.set(commandId, others);
    else this.#waiters.delete(commandId);
  }
}
