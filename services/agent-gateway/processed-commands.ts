import type { Answer } from '#bus/messages/session.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';
import { limits } from './limits.ts';
import { answerSchema } from './reply-schema.ts';

interface Wanted {
  sessionId: string;
  commandId: string;
  resolve(answer: Answer | null): void;
}

/**
 * The answers that owners left in their seen rows. While one statement is in flight the next collects, so that a thousand requests
 * whose answers were lost cost a handful of reads.
 */
export class SeenRows {
  readonly #database: Queryable;
  readonly #log: Log;
  #wanted: Wanted[] = [];
  #reading = false;

  constructor({ database, log }: { database: Queryable; log: Log }) {
    this.#database = database;
    this.#log = log;
  }

  /** The answer, or null while there is none or the database can't be read: who asks asks again. Never rejects. */
  read(sessionId: string, commandId: string): Promise<Answer | null> {
    return new Promise((resolve) => {
      this.#wanted.push({ sessionId, commandId, resolve });
      if (this.#reading) return;
      this.#reading = true;
      // Whoever asks in the same turn of the event loop is taken along.
      setImmediate(() => void this.#readAll());
    });
  }

  async #readAll(): Promise<void> {
    while (this.#wanted.length > 0) {
      const batch = this.#wanted.splice(0, limits.seenRowsPerRead);
      const answers = await this.#readBatch(batch);
      for (const { sessionId, commandId, resolve } of batch) resolve(answers.get(keyOf(sessionId, commandId)) ?? null);
    }
    this.#reading = false;
  }

  async #readBatch(batch: readonly Wanted[]): Promise<Map<string, Answer>> {
    const answers = new Map<string, Answer>();
    try {
      const columns = [batch.map(({ sessionId }) => sessionId), batch.map(({ commandId }) => commandId)];
      const { rows } = await this.#database.query<{ session_id: string; command_id: string; answer: unknown }>(SELECT_SEEN, columns);
      for (const row of rows) {
        const answer = answerSchema.safeParse(row.answer);
        if (answer.success) answers.set(keyOf(row.session_id, row.command_id), answer.data);
        else this.#log.error({ session_id: row.session_id, command_id: row.command_id }, 'a seen row holds no answer');
      }
    } catch (error) {
      this.#log.warn({ err: error, count: batch.length }, 'seen rows could not be read yet');
    }
    return answers;
  }
}

function keyOf(sessionId: string, commandId: string): string {
  return `${sessionId} ${commandId}`;
}

const SELECT_SEEN: NamedStatement = {
  name: 'agent-gateway-seen',
  // The same pair may be wanted twice; a row is returned once.
  text: `select session_id, command_id, answer from seen
    join (select distinct * from unnest($1::text[], $2::text[]) as i (session_id, command_id)) wanted using (session_id, command_id)`,
};
