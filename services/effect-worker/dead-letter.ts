import { partitionOf } from '#bus/partition.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { maskUrl } from '#shared/telemetry/redact.ts';

const MAX_REASON_CHARACTERS = 500;

/** A second delivery of the item finds the first one's row. */
const BURY = `insert into dead_letters (id, p, source, reason, body, created_at)
  select $1, $2, 'tool', $3, $4, now() where not exists (select 1 from dead_letters where id = $1 and source = 'tool')`;

interface Failed {
  effectId: string;
  sessionId: string;
}

/** Keeps a tool's item that was given up, for people to look at. A dead delivery is kept by its owner, with the end of its row. */
export async function buryToolItem(database: Queryable, { effectId, sessionId }: Failed, reason: string, body: string): Promise<void> {
  await database.query(BURY, [effectId, partitionOf(sessionId), withoutNul(reason), withoutNul(body)]);
}

/** Why an item was given up, in words for the operator. */
export function reasonOf(error: unknown): string {
  if (error instanceof SwitchyardError) return maskUrl(error.message).slice(0, MAX_REASON_CHARACTERS);
  return error instanceof Error ? maskUrl(`${error.name}: ${error.message}`).slice(0, MAX_REASON_CHARACTERS) : 'unknown';
}

/** No text column takes the character, and a dead letter must never be refused itself. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '');
}
