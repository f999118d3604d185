import type { StoredCommand } from '#bus/bus.ts';
import type { CommandTags } from '#bus/command-tags.ts';
import { LOST_BODY } from '#bus/large-bodies.ts';
import { resultTypes } from '#bus/messages/session.ts';

/** Whether a command may come from the processes that can have sent it. */
export interface CommandCheck {
  /** @param type of the command; null without one */
  accepts(stored: Pick<StoredCommand, 'body' | 'storedAtMs'>, type: string | null): boolean;
}

const results: ReadonlySet<string> = resultTypes;

/**
 * Workers have no secret: their results carry no tag and change only the effect that they name. All other commands need the tag of a process with
 * HOUSE_SECRET (docs/adr/0025).
 *
 * @param requiredFromMs commands stored earlier, by the log's clock, need none: earlier releases send none
 */
export function commandCheck(tags: Pick<CommandTags, 'isTagged'>, requiredFromMs: number): CommandCheck {
  return {
    accepts({ body, storedAtMs }, type) {
      if (type !== null && results.has(type)) return true;
      // Becomes a dead letter, like any unreadable command.
      if (body === LOST_BODY) return true;
      return storedAtMs < requiredFromMs || tags.isTagged(body);
    },
  };
}
