import type { Bus, Subscription } from '#bus/bus.ts';
import {
  type CommandOf,
  type CommandReply,
  isTransientRefusal,
  type NoticeMessage,
  type ReplyMessage,
  type SessionCommand,
  sessionCommand,
} from '#bus/messages/session.ts';
import { PARTITION_COUNT, partitionOf } from '#bus/partition.ts';
import { addresses, subjectOf } from '#bus/subjects.ts';
import type { ConversationEvent, EventContent, EventSource } from '#shared/contracts/agent/conversation-event.ts';
import type { SessionRecord } from '#shared/contracts/agent/session.ts';
import { traceId, ulid } from '#shared/ids.ts';
import type { Database } from '#shared/storage/database.ts';

/** An event that a test appends. */
export type Appended = EventContent & { id?: string; source?: EventSource; trace_id?: string; created_at?: string };

/**
 * A double of the owner of all partitions: applies commands in order, stores events, records and processed commands, then replies and notifies. It runs no
 * turns and no runs; tests append their events. Replies and notices can be withheld, since both can be lost.
 */
export class OwnerDouble {
  /** What is stored but not published. */
  readonly silent = { answers: false, notices: false };
  /** Refuses messages, as while too many are being checked. */
  isOverloaded = false;
  /** Refuses deletions of events, as during a turn. */
  isBusy = false;
  /** Notices without events, as of large ones. */
  withoutBodies = false;
  /** All received commands, in order. */
  readonly commands: SessionCommand[] = [];
  readonly #bus: Bus;
  readonly #database: Database;
  readonly #records = new Map<string, SessionRecord>();
  readonly #readers: Subscription[] = [];
  #hold: Promise<void> = Promise.resolve();

  constructor({ bus, database }: { bus: Bus; database: Database }) {
    this.#bus = bus;
    this.#database = database;
  }

  start(): void {
    for (let partition = 0; partition < PARTITION_COUNT; partition += 1) {
      this.#readers.push(
        this.#bus.commands.read(partition, { sequence: 0, fingerprint: null }, async (commands) => {
          for (const { body, sequence } of commands) {
            await this.#hold;
            await this.#onCommand(sessionCommand.parse(JSON.parse(body)), sequence);
          }
        }),
      );
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.stop()));
  }

  /** Blocks applying until the returned function is called. */
  hold(): () => void {
    let release = () => {};
    this.#hold = new Promise((resolve) => {
      release = resolve;
    });
    return release;
  }

  async append(sessionId: string, ...contents: Appended[]): Promise<ConversationEvent[]> {
    const record = this.#records.get(sessionId);
    if (record === undefined) throw new Error(`no session ${sessionId}`);
    const trace = traceId();
    const events = contents.map(({ id, source, trace_id, created_at, ...content }, index): ConversationEvent => {
      const about = { id: id ?? `evt_${ulid()}`, source: source ?? 'ai_agent', trace_id: trace_id ?? trace, metadata: {} };
      return { offset: record.last_offset + 1 + index, created_at: created_at ?? new Date().toISOString(), ...about, ...content };
    });
    await this.#store(record, events);
    this.#notify(sessionId, events);
    return events;
  }

  /** Publishes the take-over of the session's partition. */
  announceOwnerChange(sessionId: string): void {
    this.#bus.notices.publish(subjectOf(addresses.partitions, partitionOf(sessionId)), JSON.stringify({ v: 1, epoch: 2 }));
  }

  async #onCommand(command: SessionCommand, sequence: number): Promise<void> {
    this.commands.push(command);
    const { rows } = await this.#database.query<{ answer: CommandReply }>('select answer from seen where session_id = $1 and command_id = $2', [
      command.sessionId,
      command.commandId,
    ]);
    const [seen] = rows;
    if (seen !== undefined && !isTransientRefusal(seen.answer)) {
      this.#reply(command, seen.answer, true);
      return;
    }
    const events: ConversationEvent[] = [];
    const isThere = this.#records.has(command.sessionId);
    const isRefused = this.isOverloaded && command.type === 'message.post';
    const refusal: CommandReply = { ok: false, code: 'service.overloaded', message: 'too many messages are being checked', sequence };
    const reply = isRefused ? refusal : await this.#apply(command, events);
    const sql = `insert into seen (session_id, command_id, answer) values ($1, $2, $3::json)
      on conflict (session_id, command_id) do update set answer = excluded.answer`;
    await this.#database.query(sql, [command.sessionId, command.commandId, JSON.stringify(reply)]);
    this.#reply(command, reply, false);
    if (events.length > 0) this.#notify(command.sessionId, events);
    if (isThere && !this.#records.has(command.sessionId)) this.#notifyOfEnd(command.sessionId);
  }

  async #apply(command: SessionCommand, events: ConversationEvent[]): Promise<CommandReply> {
    if (command.type === 'session.create') {
      const record = recordOf(command);
      await this.#store(record, []);
      return { ok: true, value: { session: record } };
    }
    if (command.type === 'run.cancel') {
      const sql = `update runs set state = 'failed', completed_at = now() where id = $1 and completed_at is null returning id`;
      const { rows } = await this.#database.query(sql, [command.runId]);
      return rows.length > 0 ? { ok: true, value: {} } : { ok: false, code: 'request.conflict', message: 'the run has settled already' };
    }
    const record = this.#records.get(command.sessionId);
    if (record !== undefined && command.type === 'session.delete') {
      await this.#storeDeleted(record);
      return { ok: true, value: {} };
    }
    if (record !== undefined && command.type === 'session.patch') {
      const { title = record.title, mode = record.mode, setMetadata, clientOffset = record.consumption_offsets.client } = command;
      if (clientOffset > record.last_offset) return { ok: false, code: 'request.invalid', message: 'beyond the log' };
      const next = { ...record, title, mode, metadata: { ...record.metadata, ...setMetadata }, consumption_offsets: { client: clientOffset } };
      await this.#store(next, []);
      return { ok: true, value: { session: next } };
    }
    if (record !== undefined && (command.type === 'event.patch' || command.type === 'events.delete')) return this.#change(command);
    if (record !== undefined && command.type === 'event-webhook.set') {
      const { url, fromOffset } = command;
      if ((fromOffset ?? 0) > record.last_offset + 1) return { ok: false, code: 'request.invalid', message: 'beyond the log' };
      return { ok: true, value: { event_webhook: { url, from_offset: fromOffset ?? record.last_offset + 1 } } };
    }
    if (record === undefined || !isPost(command)) return { ok: false, code: 'session.not_found', message: 'there is no such session' };
    const event: ConversationEvent = {
      offset: record.last_offset + 1,
      created_at: new Date().toISOString(),
      id: `evt_${ulid()}`,
      source: command.type === 'tool-event.post' ? 'system' : command.source,
      trace_id: command.traceId,
      metadata: command.metadata,
      ...contentOf(command),
    };
    await this.#store(record, [event]);
    events.push(event);
    return { ok: true, value: { event } };
  }

  /** A stored event, without the rules of the owner but for those that the gateway answers differently. */
  async #change(command: CommandOf<'event.patch' | 'events.delete'>): Promise<CommandReply> {
    const { sessionId } = command;
    const live = 'session_id = $1 and deleted_at is null';
    if (command.type === 'events.delete') {
      if (this.isBusy && !command.force) return { ok: false, code: 'request.conflict', message: 'a turn is in progress' };
      const { rows } = await this.#database.query<{ off: number; trace_id: string }>(`select off, trace_id from events where ${live} order by off`, [
        sessionId,
      ]);
      const first = rows.find(({ off }) => off >= command.minOffset);
      if (rows.some(({ off, trace_id: trace }) => first !== undefined && off < first.off && trace === first.trace_id))
        return { ok: false, code: 'request.invalid', message: 'not the first of its turn' };
      await this.#database.query(`update events set deleted_at = now() where ${live} and off >= $2`, [sessionId, command.minOffset]);
      await this.#noteChange(sessionId);
      return { ok: true, value: {} };
    }
    const { rows } = await this.#database.query<{ body: ConversationEvent }>(`select body from events where ${live} and id = $2`, [sessionId, command.eventId]);
    const [found] = rows;
    if (found === undefined) return { ok: false, code: 'request.not_found', message: 'there is no such event in the session' };
    const event = { ...found.body, metadata: { ...found.body.metadata, ...command.setMetadata } };
    await this.#database.query('update events set body = $3::json where session_id = $1 and id = $2', [sessionId, command.eventId, JSON.stringify(event)]);
    await this.#noteChange(sessionId);
    return { ok: true, value: { event } };
  }

  async #store(record: SessionRecord, events: readonly ConversationEvent[]): Promise<void> {
    const next = { ...record, last_offset: record.last_offset + events.length };
    await this.#database.transaction(async (handle) => {
      await handle.query(
        `insert into sessions (id, p, head, machine_v, snapshot, record, created_at, updated_at, customer_id)
         values ($1, $2, $3, 1, '{}'::json, $4::json, $5, $5, $6)
         on conflict (id) do update set head = excluded.head, record = excluded.record`,
        [record.id, partitionOf(record.id), next.last_offset + 1, JSON.stringify(next), record.created_at, record.customer_id],
      );
      await handle.query('delete from session_labels where session_id = $1', [record.id]);
      await handle.query('insert into session_labels (label, customer_id, created_at, session_id) select unnest($1::text[]), $2, $3, $4', [
        record.labels,
        record.customer_id,
        record.created_at,
        record.id,
      ]);
      for (const event of events) {
        await handle.query(`insert into events (session_id, off, id, kind, source, trace_id, body, created_at) values ($1, $2, $3, $4, $5, $6, $7::json, $8)`, [
          record.id,
          event.offset,
          event.id,
          event.kind,
          event.source,
          event.trace_id,
          JSON.stringify(event),
          event.created_at,
        ]);
      }
    });
    this.#records.set(record.id, next);
  }

  /** The row stays, as a tombstone. */
  async #storeDeleted(record: SessionRecord): Promise<void> {
    await this.#database.transaction(async (handle) => {
      await handle.query('update sessions set deleted_at = now() where id = $1', [record.id]);
      await handle.query('delete from events where session_id = $1', [record.id]);
      await handle.query('delete from session_labels where session_id = $1', [record.id]);
    });
    this.#records.delete(record.id);
  }

  #reply({ answerTo, commandId }: SessionCommand, reply: CommandReply, repeat: boolean): void {
    if (answerTo === null || this.silent.answers) return;
    const message: ReplyMessage = { v: 1, commandId, repeat, answer: reply };
    this.#bus.notices.publish(subjectOf(addresses.replies, answerTo), JSON.stringify(message));
  }

  #notify(sessionId: string, events: readonly ConversationEvent[]): void {
    const [first] = events;
    if (this.silent.notices || first === undefined) return;
    const texts = this.withoutBodies ? null : events.map((event) => JSON.stringify(event));
    const message: NoticeMessage = { v: 1, first: first.offset, last: first.offset + events.length - 1, events: texts };
    this.#bus.notices.publish(subjectOf(addresses.notices, sessionId), JSON.stringify(message));
  }

  async #noteChange(sessionId: string): Promise<void> {
    await this.#database.query('update sessions set updated_at = clock_timestamp() where id = $1', [sessionId]);
    if (this.silent.notices) return;
    const head = (this.#records.get(sessionId)?.last_offset ?? -1) + 1;
    const message: NoticeMessage = { v: 1, first: head, last: head - 1, events: [], isChanged: true };
    this.#bus.notices.publish(subjectOf(addresses.notices, sessionId), JSON.stringify(message));
  }

  #notifyOfEnd(sessionId: string): void {
    if (this.silent.notices) return;
    const message: NoticeMessage = { v: 1, first: 0, last: -1, events: [], isDeleted: true };
    this.#bus.notices.publish(subjectOf(addresses.notices, sessionId), JSON.stringify(message));
  }
}

type Post = CommandOf<'message.post' | 'tool-event.post' | 'client-event.post'>;

function isPost(command: SessionCommand): command is Post {
  return command.type === 'message.post' || command.type === 'tool-event.post' || command.type === 'client-event.post';
}

function contentOf(command: Post): EventContent {
  if (command.type === 'message.post') return { kind: 'user_message', text: command.text, ...(command.participant && { participant: command.participant }) };
  if (command.type === 'client-event.post') {
    const { content } = command;
    return content.kind === 'custom' ? { kind: 'custom', data: content.data } : { stage: null, error_detail: null, ...content };
  }
  const result = { data: command.result, metadata: command.resultMetadata };
  return { kind: 'tool', tool_calls: [{ tool_id: command.toolId, arguments: command.arguments, result }] };
}

function recordOf(command: CommandOf<'session.create'>): SessionRecord {
  const at = new Date().toISOString();
  return {
    id: command.sessionId,
    customer_id: command.customerId,
    agent_id: command.agentId,
    title: command.title,
    mode: command.mode,
    status: 'ready',
    created_at: at,
    updated_at: at,
    last_offset: -1,
    consumption_offsets: { client: -1 },
    metadata: command.metadata,
    labels: command.labels,
    ephemeral: false,
  };
}
