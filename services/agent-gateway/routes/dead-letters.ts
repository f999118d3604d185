import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { listDeadLettersQuery, replayQuery } from '#shared/contracts/agent/deliveries.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { deadLetterOf, isReplayable } from '../deliveries/dead-letter-rows.ts';
import { type ReplayDeps, replayDeadLetter } from '../deliveries/replay-dead-letter.ts';
import { timePage, timePositionOf } from '../deliveries/time-cursor.ts';

/** Ids of commands are their senders'. */
const ID = /^[^\p{Cc}]{1,512}$/u;

/** Whether a text can be a dead letter's id. Any other must not reach a query. */
export function isDeadLetterId(text: string): boolean {
  return ID.test(text);
}

export function noSuchDeadLetter(): SwitchyardError {
  return new SwitchyardError('request.not_found', 'there is no such dead letter');
}

/**
 * GET /dead_letters: 200 with `{items, has_more, next_cursor}`, newest first, without their content. POST /dead_letters/:dead_letter_id/replay: 202 once the
 * command to the owner is durable; 404 for an unknown one, which one that was replayed is; 409 for one that can't be replayed.
 */
export function deadLetters(deps: ReplayDeps): FastifyPluginAsyncZod {
  const { deadLetterRows } = deps;
  const params = z.object({ dead_letter_id: z.string() });
  const replaying = { schema: { params, querystring: replayQuery }, config: { appendsCommand: true } };
  return async (app) => {
    app.get('/dead_letters', { schema: { querystring: listDeadLettersQuery } }, async ({ query: { source, limit, cursor } }) => {
      const rows = await deadLetterRows.list(source ?? null, timePositionOf('dead-letters', cursor), limit);
      return timePage('dead-letters', rows, limit, deadLetterOf);
    });

    app.post('/dead_letters/:dead_letter_id/replay', replaying, async ({ params: { dead_letter_id: id }, query }, reply) => {
      const stored = isDeadLetterId(id) ? await deadLetterRows.find(id) : [];
      const found = stored.filter(({ source }) => query.source === undefined || source === query.source);
      const [letter, another] = found.length > 1 ? found.filter(({ source }) => isReplayable(source)) : found;
      if (letter === undefined) throw noSuchDeadLetter();
      if (another !== undefined) throw new SwitchyardError('request.conflict', 'several dead letters have this id: choose one with source');
      const outcome = await replayDeadLetter(letter, deps);
      return reply.code(202).send({ id, source: letter.source, outcome });
    });
  };
}
