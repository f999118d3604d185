import type { StoredCommand } from '#bus/bus.ts';
import type { CommandTags } from '#bus/command-tags.ts';
import { LOST_BODY } from '#bus/large-bodies.ts';
import { resultTypes } from '#bus/messages/session.ts';
import type { Queryable } from '#shared/storage/database.ts';

/** Whether a command may be applied, by who can have sent it. */
export interface CommandCheck {
  /** @param type what the command says that it is; null when it says nothing */
  accepts(stored: Pick<StoredCommand, 'body' | 'storedAtMs'>, type: string | null): boolean;
}

const results: ReadonlySet<string> = resultTypes;

/**
 * Results of effects come from workers, which hold no secret: they carry no tag, and change nothing but the effect that they name. All other
 * commands need the tag of a process that holds HOUSE_SECRET (docs/adr/0025).
 *
 * @param requiredFromMs commands that the log had taken before, by its own clock, need none: releases before this one send them without
 */
export function commandCheck(tags: Pick<CommandTags, 'isTagged'>, requiredFromMs: number): CommandCheck {
  return {
    accepts({ body, storedAtMs }, type) {
      if (type !== null && results.has(type)) return true;
      // What was in it is not known: it becomes a dead letter, as any command that can't be read.
      if (body === LOST_BODY) return true;
      return storedAtMs < requiredFromMs || tags.isTagged(body);
    },
  };
}

/** Since when this deployment's commands need a tag, epoch milliseconds. It was decided by the first start of a release that tags them. */
export async function readTagsRequiredFrom(database: Queryable): Promise<number> {
  const { rows } = await database.query<{ required_from: Date }>('select required_from from command_tags');
  return rows[0]?.required_from.getTime() ?? 0;
}
