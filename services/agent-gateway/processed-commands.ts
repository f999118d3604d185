import type { CommandReply } from '#bus/messages/session.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { limits } from './limits.ts';
import { commandReply } from './reply-schema.ts';

interface Requested {
  sessionId: string;
  commandId: string;
  resolve(reply: CommandReply | null): void;
}

/** Reads replies from the processed commands. Requests collect while a statement is in flight: a thousand lost replies cost a handful of reads. */
export class ProcessedCommands {
  readonly #database: Queryable;
  readonly #log: Log;
  #requested: Requested[] = [];
  #reading = false;

  constructor({ database, log }: { database: Queryable; log: Log }) {
    this.#database = database;
    this.#log = log;
  }

  /** Null while there is none or the database can't be read: call again. Never rejects. */
  read(sessionId: string, commandId: string): Promise<CommandReply | null> {
    return new Promise((resolve) => {
      this.#requested.push({ sessionId, commandId, resolve });
      if (this.#reading) return;
      this.#reading = true;
      // Batches the reads of this tick.
      setImmediate(() => void this.#readAll());
    });
  }

  async #readAll(): Promise<void> {
    while (this.#requested.length > 0) {
      const batch = this.#requested.splice(0, limits.processedCommandsPerRead);
      const replies = await this.#readBatch(batch);
      for (const { sessionId, commandId, resolve } of batch) resolve(replies.get(keyOf(sessionId, commandId)) ?? null);
    }
    this.#reading = false;
  }

  async #readBatch(batch: readonly Requested[]): Promise<Map<string, CommandReply>> {
    const replies = new Map<string, CommandReply>();
    try {
      const columns = [batch.map(({ sessionId }) => sessionId), batch.map(({ commandId }) => commandId)];
      const { rows } = await this.#database.query<{ session_id: string; command_id: string; answer: unknown }>(SELECT_PROCESSED, columns);
      for (const row of rows) {
        const reply = commandReply.safeParse(row.answer);
        if (reply.success) replies.set(keyOf(row.session_id, row.command_id), reply.data);
        else this.#log.error({ session_id: row.session_id, command_id: row.command_id }, 'a processed command has no valid reply');
      }
    } catch (error) {
      this.#log.warn({ err: error, count: batch.length }, 'processed commands could not be read yet');
    }
    return replies;
  }
}

function keyOf(sessionId: string, commandId: string): string {
  return `${sessionId} ${commandId}`;
}

const SELECT_PROCESSED: NamedStatement = {
  name: 'agent-gateway-seen',
  // `distinct`: two requests may wait for the same command.
  text: `select session_id, command_id, answer from seen
    join (select distinct * from unnest($1::text[], $2::text[]) as i (session_id, command_id)) wanted using (session_id, command_id)`,
};
