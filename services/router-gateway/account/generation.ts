import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { usageRecord } from '#bus/messages/usage.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { isGenerationId, readGenerationId } from '#shared/generation-id.ts';
import type { AwaitedGenerations } from './awaited-generations.ts';
import { callingKeyOf } from './calling-key.ts';
import { generationRecordOf } from './generation-record.ts';

export interface GenerationDeps {
  houseSecret: string;
  generations: AwaitedGenerations;
}

/**
 * GET /generation?id=: the record of a call that has ended. Keys get their own, management keys any. 404, always the same, for an id that is unknown,
 * another key's, or whose call has not ended; an id without a row is waited for.
 */
export function generation({ houseSecret, generations }: GenerationDeps): FastifyPluginAsyncZod {
  const querystring = z.object({ id: z.string().min(1) });
  return async (app) => {
    app.get('/generation', { schema: { querystring } }, async (request, reply) => {
      const { id } = request.query;
      const { id: keyId, isManagement } = callingKeyOf(request);
      const isPossible = isManagement ? isGenerationId(id) : readGenerationId(id, { houseSecret, keyId }) !== null;
      if (!isPossible) throw unknownGeneration();
      const found = await generations.find(id, closedSignal(reply));
      // Its tag is that of the row's key: another one would be of another deployment.
      if (found === null || readGenerationId(id, { houseSecret, keyId: found.keyId }) === null) throw unknownGeneration();
      return { data: generationRecordOf(usageRecord.parse(found.record), isManagement) };
    });
  };
}

/** Aborts when the response is closed. */
function closedSignal({ raw }: FastifyReply): AbortSignal {
  const controller = new AbortController();
  raw.once('close', () => controller.abort());
  return controller.signal;
}

function unknownGeneration(): SwitchyardError {
  return new SwitchyardError('request.not_found', 'There is no generation of this id, or it has not ended yet');
}
